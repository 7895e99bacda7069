package main

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// compareFiles compares pinned configurations, mappings, lists to delete and lists of errors with the recorded ones.
func (r *replay) compareFiles(s step, got result, text string) {
	for _, part := range strings.Split(text, "##### ")[1:] {
		name, content, _ := strings.Cut(part, "\n")
		name = strings.TrimSpace(name)
		base := path.Base(name)
		var compare func(string) []string
		switch {
		case strings.HasPrefix(base, "isc_pinned") || strings.HasPrefix(base, "disc_pinned"),
			strings.HasPrefix(base, "delete-imageset-config"):
			compare = func(text string) []string { return objects(r.T, text) }
		case strings.HasPrefix(base, "delete-images"):
			compare = func(text string) []string { return deleteItems(r.T, text) }
		case strings.HasPrefix(base, "mirroring_errors"):
			compare = failedImages
		case base == "mapping.txt":
			compare = func(text string) []string {
				lines := strings.Split(strings.TrimSpace(text), "\n")
				lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "catalog") })
				for i := range lines {
					lines[i] = strings.ReplaceAll(lines[i], "localhost:55217/", "")
				}
				slices.Sort(lines)
				return lines
			}
		default:
			continue
		}
		pattern := filepath.Join(r.dir, "ws", strings.NewReplacer("<rfc3339>", "*", "<stamp>", "*").Replace(name))
		files, _ := filepath.Glob(pattern)
		if strings.Contains(base, "pinned") && (slices.Contains(s.args, "--from") || got.status != 0) {
			continue // oc-mirror finds them in the archive; after errors they are those of an earlier step
		}
		// Several runs leave a file each, whose names have the time.
		want := compare(content)
		if len(files) < strings.Count(text, "##### "+name) {
			continue // two runs within a second
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			have := compare(r.recorded(readFile(r.T, file)))
			if strings.HasPrefix(base, "mirroring_errors") { // images that are skipped as others failed are in it, too
				have = slices.DeleteFunc(have, func(line string) bool { return !slices.Contains(want, line) })
			}
			return slices.Equal(have, want)
		}) {
			have := ""
			for _, file := range files {
				have += strings.Join(compare(r.recorded(readFile(r.T, file))), "\n")
			}
			r.Errorf("%s: no file %s is as oc-mirror's\n%s\nbut\n%s", s.name, name, strings.Join(want, "\n"), have)
		}
	}
}

// deleteItems returns what a list to delete has, with the images that are kept as others need them (defect 15). It leaves
// out signatures: oc-mirror lists tags that need not exist.
func deleteItems(t *testing.T, text string) []string {
	t.Helper()
	type item struct{ ImageName, ImageReference string }
	var list struct {
		APIVersion, Kind string
		Items, KeptItems []item
	}
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	out := []string{list.APIVersion, list.Kind}
	if !slices.IsSortedFunc(list.Items, func(a, b item) int {
		return strings.Compare(a.ImageReference, b.ImageReference)
	}) {
		out = append(out, "not sorted")
	}
	for _, i := range append(list.Items, list.KeptItems...) {
		if !strings.HasSuffix(i.ImageReference, ".sig") {
			out = append(out, i.ImageName+" "+i.ImageReference)
		}
	}
	slices.Sort(out)
	return out
}

// failedImages returns which images a list of errors names, with their bundles and operators. Images that were skipped
// as others failed are left out, and catalogs, which are no images of the account.
func failedImages(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if what, why, ok := strings.Cut(line, " error: "); ok && !strings.HasPrefix(why, "skipping") && !strings.Contains(what, "/catalog") {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}
