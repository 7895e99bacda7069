package charts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The places below a working directory.
const (
	archivesDir  = "helm/charts"
	indexesDir   = "helm/indexes"
	localDir     = "helm/local"
	resolvedFile = "helm/resolved.json"
)

// MaxArchive is the limit of a chart's archive in bytes.
const MaxArchive = 32 << 20

// resolved is the archive that a rule has chosen.
type resolved struct {
	Version string `json:"version"`
	// File is the archive's path below the working directory.
	File   string        `json:"file"`
	Digest digest.Digest `json:"digest"`
}

// resolutions are the archives by repository, and by chart and rule.
type resolutions map[string]map[string]resolved

// ruleKey identifies what is asked of a repository.
func ruleKey(name string, rule Rule) string { return strings.TrimSuffix(name+" "+rule.text, " ") }

// absent is an error about something that is asked for and not there.
type absent string

func (e absent) Error() string { return string(e) }

// Is implements the interface of [errors.Is].
func (e absent) Is(target error) bool { return target == fs.ErrNotExist }

// ErrorClass returns the class of input.
func (e absent) ErrorClass() fault.Class { return fault.Input }

// readStored reads a file of at most so many bytes that an earlier run has kept; an error of the class [fs.ErrNotExist] if there is
// none.
func readStored(files fs.FS, name string, most int64) ([]byte, error) {
	if files == nil {
		return nil, fs.ErrNotExist
	}
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", fault.ErrInvalid, name)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%w: %s has more than %d bytes", fault.ErrLimit, name, most)
	}
	return text, err
}

// readResolved reads what rules have chosen. A file that cannot be read resolves nothing.
func readResolved(files fs.FS) resolutions {
	out := resolutions{}
	if text, err := readStored(files, resolvedFile, MaxIndex); err == nil && json.Unmarshal(text, &out) != nil {
		out = nil
	}
	if out == nil {
		out = resolutions{}
	}
	return out
}

// storedArchive finds the archive that an earlier run has kept for a rule.
func storedArchive(files fs.FS, repository, name string, rule Rule) (version, file string, err error) {
	if of, ok := readResolved(files)[repository][ruleKey(name, rule)]; ok && isArchive(of.File) {
		return of.Version, of.File, nil
	}
	var versions []string
	names := map[string]string{}
	entries, err := readDir(files, archivesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), name+"-")
		version, tgz := strings.CutSuffix(rest, ".tgz")
		if !ok || !tgz || FullVersion(version) == "" || !strings.Contains(version, ".") {
			continue
		}
		versions = append(versions, version)
		names[version] = path.Join(archivesDir, e.Name())
	}
	slices.SortFunc(versions, compareVersions)
	fits := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return rule.find([]string{v}) < 0 })
	full := func(v string) string { return FullVersion(v) }
	switch {
	case len(versions) == 0:
		return "", "", absent("there is no archive of the chart " + name + ": it was not mirrored to disk")
	case len(fits) == 0:
		return "", "", noVersion(name, rule, versions)
	case len(slices.CompactFunc(slices.Clone(fits), func(a, b string) bool { return full(a) == full(b) })) > 1:
		return "", "", absent("several archives of the chart " + name + " fit (" + strings.Join(fits[:min(len(fits), 10)], ", ") +
			"), and there is no record of which one was chosen: write its version")
	}
	return fits[0], names[fits[0]], nil
}

func readDir(files fs.FS, dir string) ([]fs.DirEntry, error) {
	if files == nil {
		return nil, fs.ErrNotExist
	}
	return fs.ReadDir(files, dir)
}

// isArchive tells whether a path is one of an archive of a chart; it may come from others.
func isArchive(name string) bool {
	return fs.ValidPath(name) && strings.HasPrefix(name, archivesDir+"/") && strings.HasSuffix(name, ".tgz")
}

// indexFile returns where the index of a repository is kept. A path that is no plain text is escaped, as in the URL.
func indexFile(of *url.URL) string {
	at := of.Path
	if !utf8.ValidString(at) || strings.ContainsFunc(at, func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' }) {
		at = of.EscapedPath()
	}
	return path.Join(indexesDir, path.Clean("/"+of.Host), path.Clean("/"+at), "index.yaml")
}

// localFile returns where a local chart is kept. Its name is made of its path, which the other side has too.
func localFile(at string) string {
	return path.Join(localDir, digest.FromString(at).Encoded()[:12], "chart.tgz")
}
