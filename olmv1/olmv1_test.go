package olmv1

import (
	"strings"
	"testing"
)

func TestCatalogImage(t *testing.T) {
	long := strings.Repeat("a", 128)
	for ref, want := range map[string]string{
		"quay.io/a/b:v1": "", "host:5000/a/b:v1": "", "h/a@sha256:" + strings.Repeat("0", 64): "",
		"host:5000/a@sha256:" + strings.Repeat("0", 64): "", "h/" + long + ":v1": "",
		"h:1/" + long + "@sha256:" + strings.Repeat("0", 64): "",
		"h/a:" + long[:127]: "", "h/a:" + long: "not be more than 127",
		"h:1/" + long + ":v1": "not be more than 127", "[::1]:5000/a:v1": "must start with a valid domain",
		"quay.io:v1": "a valid name is required", "quay.io/a/b": "must end with a digest or a tag",
		"h/a:é": "valid tags must begin with", "h/a@sha256:00": "at least 32 characters",
		"h/a@1:" + strings.Repeat("0", 32): "digest algorithm is not valid", "h/a@sha256:" + strings.Repeat("x", 32): "hex characters",
		"h/" + strings.Repeat("a/", 500) + ":v1": "may not be more than 1000 bytes",
	} {
		err := CatalogImage(ref)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "spec.source.image.ref: ")) {
			t.Errorf("%s: %v, want %q", ref, err, want)
		}
	}
}

func FuzzFields(f *testing.F) {
	for _, text := range []string{"a.b-c", "1.0.0 - 2", "*", "h:5/a:v1", "", "é\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, err := range []error{PackageName(text), Channels([]string{text, text}), Version(text), CatalogImage(text),
			ExtensionName(text, true), ExtensionName(text, false)} {
			if err != nil && len(err.Error()) > 10*(1000+4*len(text)) {
				t.Errorf("an error of %d bytes for %d", len(err.Error()), len(text))
			}
		}
	})
}
