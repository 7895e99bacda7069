package workdir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/internal/atmirror"
)

// Record is what runs have mirrored to a target: what verifying looks for, and what deleting compares with.
type Record struct {
	Version int    `json:"version"`
	Target  string `json:"target"`
	// MaxNestedPaths is that of the last run, see [imageset.Target].
	MaxNestedPaths int             `json:"maxNestedPaths,omitempty"`
	Catalogs       []Published     `json:"catalogs"`
	Releases       []Published     `json:"releases,omitempty"`
	Images         []RecordedImage `json:"additionalImages,omitempty"`
	Charts         []RecordedChart `json:"charts,omitempty"`
	Found          bool            `json:"-"` // the workspace has a record
}

// Published is a catalog or a release image that was published.
type Published struct {
	Source      string        `json:"source"`
	Destination imageset.Ref  `json:"destination"`
	Digest      digest.Digest `json:"digest"`
}

// RecordedImage is an additional image that was copied.
type RecordedImage struct {
	Source      imageset.Ref `json:"source"`
	Destination imageset.Ref `json:"destination"`
}

// RecordedChart is a chart with its images.
type RecordedChart struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Repository is the URL of its repository, without user and password; Path is that of a local chart.
	Repository string `json:"repository,omitempty"`
	Path       string `json:"path,omitempty"`
	// Images are those that were copied, Missing those that the last run has not copied.
	Images  []RecordedImage `json:"images"`
	Missing []RecordedImage `json:"missing,omitempty"`
}

// Is tells whether two are one chart, whatever their images are.
func (c *RecordedChart) Is(o RecordedChart) bool {
	return c.Name == o.Name && c.Version == o.Version && c.Repository == o.Repository && c.Path == o.Path
}

// Title is how messages name the chart.
func (c *RecordedChart) Title() string {
	return strings.TrimSuffix("chart "+cmp.Or(c.Name, c.Path)+" "+c.Version, " ")
}

// PutChart adds a chart to a list. Images that it had before stay in it: they are at the target.
func PutChart(list []RecordedChart, one RecordedChart) []RecordedChart {
	at := slices.IndexFunc(list, func(o RecordedChart) bool { return o.Is(one) })
	if at < 0 {
		at, list = len(list), append(list, RecordedChart{Name: one.Name, Version: one.Version, Repository: one.Repository, Path: one.Path})
	}
	of := &list[at]
	if of.Images == nil {
		of.Images = []RecordedImage{}
	}
	for _, i := range one.Images {
		if !slices.Contains(of.Images, i) {
			of.Images = append(of.Images, i)
		}
	}
	of.Missing = slices.DeleteFunc(slices.Clone(one.Missing), func(i RecordedImage) bool { return slices.Contains(of.Images, i) })
	slices.SortFunc(of.Images, func(a, b RecordedImage) int {
		return cmp.Or(strings.Compare(a.Destination.String(), b.Destination.String()), strings.Compare(a.Source.String(), b.Source.String()))
	})
	slices.SortFunc(list, func(a, b RecordedChart) int {
		return cmp.Or(strings.Compare(a.Repository+" "+a.Path, b.Repository+" "+b.Path), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Version, b.Version))
	})
	return list
}

const recordVersion = 1

// recordName is the file of a target's record.
func recordName(target string) string {
	return ".mirrored-" + digest.FromString(target).Encoded()[:16] + ".json"
}

// recordNames match the files of records.
const recordNames = ".mirrored-*.json"

// ErrNoRecord is the class of errors about a workspace from which nothing was mirrored to a target.
var ErrNoRecord = fault.New(fault.Usage, "no record")

// ReadRecords reads what was mirrored from a workspace to a registry. Whatever name the registry had then, it has that
// of host in the result. Records of other registries are left out.
func ReadRecords(w Dir, host string) (out []*Record, err error) {
	if w == "" {
		return nil, nil
	}
	files, err := os.ReadDir(string(w))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no run has used it
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name := file.Name()
		if ok, _ := filepath.Match(recordNames, name); !ok {
			continue
		}
		text, err := w.Read(name)
		if err != nil {
			return nil, err
		}
		rec := &Record{}
		if err := json.Unmarshal(text, rec); err != nil || rec.Version != recordVersion {
			return nil, fmt.Errorf("%s: not a record of this program's version: %v; remove it to go on without it",
				filepath.Join(string(w), name), err)
		}
		of, path, slash := strings.Cut(rec.Target, "/")
		if name != recordName(rec.Target) {
			return nil, fmt.Errorf("%s: %w: it is of %s, which is not at %s, by its content, and of another target by its "+
				"name; remove it to go on without it", filepath.Join(string(w), name), fault.ErrInvalid,
				fault.Quote(rec.Target), host)
		}
		if !(imageset.Ref{Host: of}).AtHost(host) {
			continue
		}
		called := rec.Target
		if rec.Target = host; slash {
			rec.Target += "/" + path
		}
		if err := rec.moveTo(host); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it to go on without it", filepath.Join(string(w), name), err)
		}
		if called == rec.Target {
			out = slices.Insert(out, 0, rec) // runs with this name write this record
		} else {
			out = append(out, rec)
		}
	}
	return out, nil
}

// moveTo gives what is recorded the name by which a command knows the registry. The error is about a record that names
// another one: a workspace may come from elsewhere, and no host is asked because it names it.
func (rec *Record) moveTo(host string) error {
	move := func(at *imageset.Ref) error {
		here, ok := atmirror.AtHost(*at, host)
		if !ok {
			return fmt.Errorf("%w: it names %s, which is not at %s", fault.ErrInvalid, fault.Quote(at.String()), host)
		}
		*at = here
		return nil
	}
	var errs []error
	for i := range rec.Catalogs {
		errs = append(errs, move(&rec.Catalogs[i].Destination))
	}
	for i := range rec.Releases {
		errs = append(errs, move(&rec.Releases[i].Destination))
	}
	for i := range rec.Images {
		errs = append(errs, move(&rec.Images[i].Destination))
	}
	for _, c := range rec.Charts {
		for i := range c.Images {
			errs = append(errs, move(&c.Images[i].Destination))
		}
	}
	return errors.Join(errs...)
}

// ReadRecord returns what was mirrored from the workspace to a target; an empty record if there is nothing.
func ReadRecord(w Dir, t imageset.Target) (*Record, error) {
	all, err := ReadRecords(w, t.Host)
	if err != nil {
		return nil, err
	}
	out := &Record{Version: recordVersion, Target: t.String()}
	for _, rec := range all {
		if rec.Target != out.Target {
			continue
		}
		out.Found = true
		out.MaxNestedPaths = cmp.Or(out.MaxNestedPaths, rec.MaxNestedPaths)
		out.Catalogs, out.Releases = merged(out.Catalogs, rec.Catalogs), merged(out.Releases, rec.Releases)
		for _, i := range rec.Images {
			if !slices.Contains(out.Images, i) {
				out.Images = append(out.Images, i)
			}
		}
		for _, c := range rec.Charts {
			out.Charts = PutChart(out.Charts, c)
		}
	}
	return out, nil
}

// merged adds what is at other destinations.
func merged(list, more []Published) []Published {
	for _, c := range more {
		if !slices.ContainsFunc(list, func(o Published) bool { return o.Destination == c.Destination }) {
			list = append(list, c)
		}
	}
	return list
}

// Put adds what was published to a list, in place of what was there, and sorts the list.
func Put(list []Published, one Published) []Published {
	list = slices.DeleteFunc(list, func(o Published) bool { return o.Destination == one.Destination })
	list = append(list, one)
	slices.SortFunc(list, func(a, b Published) int { return strings.Compare(a.Destination.String(), b.Destination.String()) })
	return list
}

// Write replaces the record of a target.
func (rec *Record) Write(w Dir, t imageset.Target) error {
	text, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'), recordName(t.String()))
	return err
}
