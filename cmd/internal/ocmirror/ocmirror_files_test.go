package ocmirror_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// deleteItems returns what a list to delete has: "TYPE NAME REFERENCE", and "kept" in place of the type for images that
// are kept as others need them (defect 15). It leaves out signatures: oc-mirror lists tags that need not exist.
func deleteItems(t *testing.T, text string) []string {
	t.Helper()
	if text == "" {
		return nil
	}
	type item struct{ ImageName, ImageReference, Type string }
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
	for _, i := range list.Items {
		if !strings.HasSuffix(i.ImageReference, ".sig") {
			out = append(out, i.Type+" "+i.ImageName+" "+i.ImageReference)
		}
	}
	for _, i := range list.KeptItems {
		out = append(out, "kept "+i.ImageName+" "+i.ImageReference)
	}
	slices.Sort(out)
	return out
}

// failedImages returns which images a list of errors names, with their bundles and operators. Images that were skipped
// as others failed are left out, and catalogs, which are no images of the account.
func failedImages(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if what, why, ok := strings.Cut(line, " error: "); ok && !strings.HasPrefix(why, "skipping") &&
			!strings.Contains(what, "/catalog") {
			out = append(out, strings.Replace(what, "docker://", "", 1))
		}
	}
	slices.Sort(out)
	return out
}
