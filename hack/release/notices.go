package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licenceFile matches the names of files with licences and notices.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|unlicense|patents)([-._].*)?$`)

// source matches what has such a name and is a program.
var source = regexp.MustCompile(`(?i)\.(go|sh|py|tmpl)$`)

// notices returns the licences of the modules that are linked into a program and into the servers in it, and that of
// Go. A module without a licence is an error.
func (r *release) notices(p platform) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "bindery contains the standard library of Go and the modules below, each under its licence.\n")
	root, err := r.command(environment(here), goTool(), "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(r.programs[p])
	if err != nil {
		return nil, err
	}
	if err := licences(&out, "The Go standard library, "+info.GoVersion, strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	dirs, err := r.moduleDirs(info.Deps)
	if err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if err := licences(&out, m.Path+" "+m.Version, dirs[m.Path]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// moduleDirs returns where the sources of modules are.
func (r *release) moduleDirs(list []*debug.Module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range list {
		if m.Replace != nil {
			m = m.Replace
		}
		args = append(args, m.Path+"@"+m.Version)
	}
	text, err := r.command(environment(here), goTool(), args...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
	return dirs, nil
}

// licences adds the licences in a directory.
func licences(out *bytes.Buffer, title, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) || source.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s\n%s (%s)\n%[1]s\n\n%[4]s\n", strings.Repeat("=", 100), title, e.Name(),
			bytes.TrimSpace(text))
		found = found || !strings.HasPrefix(strings.ToLower(e.Name()), "notice") &&
			!strings.HasPrefix(strings.ToLower(e.Name()), "patents")
	}
	if !found {
		return fmt.Errorf("%s: no licence in its source", title)
	}
	return nil
}
