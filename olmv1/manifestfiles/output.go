// Package manifestfiles writes the objects that OLM v1 applies for a bundle: as one text, or as the files of a directory
// that kubectl and kustomize apply.
package manifestfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/indented"
	"github.com/operator-bindery/bindery/internal/yamlout"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// ErrForeign is the class of errors about a directory that has files of others.
var ErrForeign = fault.New(fault.Local, "the directory has other files")

// listFile has the names of the files that were written to a directory, one a line. kubectl and kustomize pass it over.
const listFile = ".bindery-manifests"

// WriteDir writes files to a directory, which appears whole or not at all. One that exists is replaced if it is empty
// or has nothing but what WriteDir wrote to it; else the error is [ErrForeign].
func WriteDir(ctx context.Context, dir string, all []File) (err error) {
	if err := checkOwn(dir); err != nil {
		return err
	}
	d, err := atomicfs.NewDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	var names strings.Builder
	for _, f := range all {
		fmt.Fprintln(&names, f.Name)
	}
	for _, f := range append(slices.Clone(all), File{listFile, []byte(names.String())}) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !fs.ValidPath(f.Name) {
			return fmt.Errorf("invalid file name %.200q", f.Name)
		}
		to := filepath.Join(d.Path(), filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := writeDurable(to, f.Text); err != nil {
			return err
		}
	}
	return d.Replace()
}

// writeDurable writes a new file to the disk. The directory is not visible yet, so that the file needs no other name
// until it is complete.
func writeDurable(name string, text []byte) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

// checkOwn refuses a directory with files that WriteDir did not write.
func checkOwn(dir string) error {
	if atomicfs.CheckEmpty(dir) == nil {
		return nil
	}
	if _, err := os.ReadDir(dir); err != nil {
		return err
	}
	own := map[string]bool{listFile: true}
	text, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range strings.Split(string(text), "\n") {
		for ; name != "." && name != "" && fs.ValidPath(name); name = path.Dir(name) {
			own[name] = true
		}
	}
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case !own[name]:
			return fmt.Errorf("%w: %q in %q", ErrForeign, name, dir)
		}
		return nil
	})
}

// Format is how objects are written.
type Format string

const (
	// YAML is a stream of documents, each after a line "---".
	YAML Format = "yaml"
	// JSON is one object: a List of version v1.
	JSON Format = "json"
	// NDJSON is an object on each line, with sorted keys.
	NDJSON Format = "ndjson"
)

// Formats returns the names of the formats.
func Formats() []string { return []string{string(YAML), string(JSON), string(NDJSON)} }

// Text returns the objects of the phases, one after the other. byPhase adds a comment to the YAML above the first
// object of each phase.
func (f Format) Text(phases []manifests.Phase, byPhase bool) ([]byte, error) {
	var objects []manifests.Object
	titles := map[int]string{} // by the first object of a phase
	for i, p := range phases {
		titles[len(objects)] = fmt.Sprintf("phase %d of %d: %s", i+1, len(phases), p.Name)
		objects = append(objects, p.Objects...)
	}
	var out []byte
	switch f {
	case JSON:
		list := map[string]any{"apiVersion": "v1", "kind": "List", "items": []json.RawMessage{}}
		items := make([]json.RawMessage, len(objects))
		for i, o := range objects {
			items[i] = o.JSON
		}
		list["items"] = items
		return indented.Encode(list, "    ")
	case NDJSON:
		for _, o := range objects {
			out = append(append(out, o.JSON...), '\n')
		}
		return out, nil
	}
	var budget indented.Budget
	for i, o := range objects {
		out = append(out, "---\n"...)
		if title := titles[i]; byPhase && title != "" {
			out = fmt.Appendf(out, "# %s\n", title)
		}
		var err error
		if out, err = yamlout.AppendWithin(out, o.JSON, &budget); err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
	}
	return out, nil
}

// File is a file of a directory of manifests. Its name is relative, with slashes.
type File struct {
	Name string
	Text []byte
}

// KustomizationFile is the name of the file that lists the others.
const KustomizationFile = "kustomization.yaml"

const maxFileName = 200 // bytes without the extension

// Files returns a file for each object, YAML or JSON, and a kustomization.yaml that lists them in order. byPhase puts
// them into a directory for each phase, numbered in the order of application. Names have small letters, digits,
// dots and dashes only, differ also where case does not count, and never leave the directory.
func (f Format) Files(phases []manifests.Phase, byPhase bool) ([]File, error) {
	var files []File
	var budget indented.Budget
	taken := map[string]bool{KustomizationFile: true}
	for i, p := range phases {
		dir := ""
		if byPhase {
			dir = fmt.Sprintf("%02d-%s/", i+1, p.Name)
		}
		for _, o := range p.Objects {
			name := freeName(dir+fileName(o), taken)
			text, err := fileText(o, f, &budget)
			if err != nil {
				return nil, err
			}
			files = append(files, File{name + extension(f), text})
		}
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.Name
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": names,
		"sortOptions": map[string]string{"order": "fifo"},
	})
	if err != nil {
		return nil, err
	}
	return append(files, File{KustomizationFile, text}), nil
}

func extension(f Format) string {
	if f == JSON {
		return ".json"
	}
	return ".yaml"
}

func fileText(o manifests.Object, f Format, b *indented.Budget) (text []byte, err error) {
	if f == JSON {
		text, err = indented.EncodeWithin(o.JSON, "    ", b)
	} else {
		text, err = yamlout.AppendWithin(nil, o.JSON, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	return text, nil
}

// fileName returns the name of an object's file, without the extension.
func fileName(o manifests.Object) string {
	safe := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
				return r
			}
			return '-'
		}, strings.ToLower(text))
		return strings.Trim(text, ".-")
	}
	name := safe(o.Kind) + "_" + safe(o.Name)
	return name[:min(len(name), maxFileName)]
}

// freeName returns the name, with a number if it is taken, and takes it.
func freeName(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	taken[free] = true
	return free
}
