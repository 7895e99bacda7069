package platform_test

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/platform"
)

// of returns the platform of a name.
func of(name string) v1.Platform {
	parts := strings.SplitN(name+"//", "/", 4)
	return v1.Platform{OS: parts[0], Architecture: parts[1], Variant: strings.TrimSuffix(parts[2], "/")}
}

func TestMatches(t *testing.T) {
	for rule, c := range map[string]struct {
		image, wanted  string // names, separated by spaces
		is, anyVariant bool
	}{
		"none are all":                           {"linux/amd64", "", true, true},
		"equal":                                  {"linux/amd64", "linux/amd64", true, true},
		"one of several":                         {"linux/amd64", "linux/arm64 linux/amd64", true, true},
		"another architecture":                   {"linux/amd64", "linux/arm64", false, false},
		"another operating system":               {"windows/amd64", "linux/amd64", false, false},
		"nothing is no wildcard":                 {"linux/amd64", "/", false, false},
		"an attestation":                         {"unknown/unknown", "linux/amd64", false, false},
		"a variant that is not asked for":        {"linux/arm/v6", "linux/arm", true, true},
		"the variant that is asked for":          {"linux/arm/v6", "linux/arm/v6", true, true},
		"another variant":                        {"linux/arm/v6", "linux/arm/v7", false, true},
		"the variant that arm64 has":             {"linux/arm64", "linux/arm64/v8", true, true},
		"the variant that arm has":               {"linux/arm", "linux/arm/v7", true, true},
		"a variant that arm does not have":       {"linux/arm", "linux/arm/v6", false, true},
		"the variant that amd64 has":             {"linux/amd64", "linux/amd64/v1", true, true},
		"a variant that amd64 does not have":     {"linux/amd64", "linux/amd64/v3", false, true},
		"a variant of which there is no default": {"linux/ppc64le", "linux/ppc64le/power9", false, true},
		"Go's names of architectures alone":      {"linux/x86_64", "linux/amd64", false, false},
	} {
		var wanted []v1.Platform
		for name := range strings.FieldsSeq(c.wanted) {
			wanted = append(wanted, of(name))
		}
		if got := platform.Matches(of(c.image), wanted...); got != c.is {
			t.Errorf("%s: %t for %s, wanted %s", rule, got, c.image, c.wanted)
		}
		if len(wanted) == 1 && platform.MatchesAnyVariant(of(c.image), wanted[0]) != c.anyVariant {
			t.Errorf("%s: %t for %s and any variant of %s", rule, !c.anyVariant, c.image, c.wanted)
		}
	}
	newer := of("windows/amd64")
	newer.OSVersion, newer.OSFeatures = "10.0.2", []string{"win32k"}
	older := newer
	older.OSVersion = "10.0.1"
	if !platform.Matches(newer, older) || platform.Plain(newer).OSVersion != "" || platform.Plain(newer).OSFeatures != nil {
		t.Error("the version of an operating system is compared")
	}
}

func TestLists(t *testing.T) {
	list := platform.AppendNew(nil, of("linux/arm64"), of("linux/arm64/v8"), of("linux/arm64"))
	list = platform.AppendNew(list, of("linux/arm64/v8"), of("linux/amd64"))
	var names []string
	for _, p := range list {
		names = append(names, platform.Name(p))
	}
	if want := []string{"linux/arm64", "linux/arm64/v8", "linux/amd64"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, c := range [][2]string{{"/", "linux/amd64"}, {"linux/", "linux/amd64"}, {"/arm/v6", "linux/arm/v6"}, {"windows/arm64", "windows/arm64"}} {
		if got := platform.Name(platform.Complete(of(c[0]))); got != c[1] {
			t.Errorf("%s: got %s, want %s", c[0], got, c[1])
		}
	}
}
