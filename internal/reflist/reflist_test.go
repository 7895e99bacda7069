package reflist

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

var one = v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("one"), Size: 3,
	ArtifactType: "application/x-test", Annotations: map[string]string{"a": "<b>"}}

func TestTag(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 8)
	for d, want := range map[digest.Digest]string{
		digest.Digest("sha256:" + hex[:64]): "sha256-" + hex[:64],
		digest.Digest("sha512:" + hex):      "sha512-" + hex[:64],
	} {
		if got := Tag(d); got != want {
			t.Errorf("%s: %s instead of %s", d, got, want)
		}
	}
	for tag, want := range map[string]bool{"sha256-" + hex[:64]: true, "sha256-" + hex[:64] + ".sig": true,
		"sha256-" + hex[:64] + ".sbom": true, "sha256-" + hex[:63]: false, "sha256-" + hex[:64] + ".x": false,
		"v1": false,
		"":   false} {
		if Belongs(tag) != want {
			t.Errorf("%q", tag)
		}
	}
}

// A list is made, added to, and left if it has the entry. Its members stay in their order.
func TestAdd(t *testing.T) {
	first, err := Add(nil, one)
	if err != nil || !strings.HasPrefix(string(first), `{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageIndex) {
		t.Fatalf("%s %v", first, err)
	}
	if again, err := Add(first, one); again != nil || err != nil {
		t.Errorf("%s %v", again, err)
	}
	found, err := Parse(first)
	if err != nil || len(found) != 1 || found[0].Annotations["a"] != "<b>" ||
		found[0].ArtifactType != one.ArtifactType {
		t.Errorf("%+v %v", found, err)
	}
	two := one
	two.Digest = digest.FromString("two")
	text, err := Add([]byte(` {"z": {"y": [ 1.0 ]}, "manifests": [{"digest":"`+string(one.Digest)+
		`","own":"member"}], "schemaVersion": 2, "a": null}`), two)
	want := `{"z":{"y": [ 1.0 ]},"manifests":[{"digest":"` + string(one.Digest) + `","own":"member"},{`
	if err != nil || !strings.HasPrefix(string(text), want) || !strings.HasSuffix(string(text),
		`}],"schemaVersion":2,"a":null}`) {
		t.Errorf("%s %v", text, err)
	}
}

// Whatever is no OCI index is no list, and nothing is added to it.
func TestNoLists(t *testing.T) {
	for text, want := range map[string]error{
		"":                                     ErrNotList,
		"text":                                 ErrNotList,
		"[]":                                   ErrNotList,
		"null":                                 ErrNotList,
		`{"schemaVersion":2}`:                  ErrNotList,
		`{"schemaVersion":1,"manifests":[]}`:   ErrNotList,
		`{"schemaVersion":"2","manifests":[]}`: ErrNotList,
		`{"schemaVersion":2,"manifests":{}}`:   ErrNotList,
		`{"schemaVersion":2,"mediaType":"application/json","manifests":[]}`:                         ErrNotList,
		`{"schemaVersion":2,"mediaType":1,"manifests":[]}`:                                          ErrNotList,
		`{"schemaVersion":2,"layers":[]}`:                                                           ErrNotList,
		`{"schemaVersion":2,"manifests":[7]}`:                                                       fault.ErrInvalid,
		`{"schemaVersion":2,"manifests":[{}` + strings.Repeat(",{}", MaxReferrers) + `]}`:           fault.ErrLimit,
		`{"schemaVersion":2,"manifests":[],"x":"` + strings.Repeat("x", 4<<20) + `"}`:               fault.ErrLimit,
		`{"schemaVersion":2,"manifests":[],"x":"` + strings.Repeat("x", 4<<20-60) + `"}`:            nil,
		`{"schemaVersion":2,"manifests":[{"digest":"x"},{"digest":"x"}],"manifests":[{"size":-1}]}`: nil,
	} {
		if _, err := Parse([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.80q: %v", text, err)
		}
		added, err := Add([]byte(text), one)
		if want == nil && len(text) > 1<<20 {
			want = fault.ErrLimit // there is no room for one more
		}
		if !errors.Is(err, want) || want != nil && added != nil && !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%.80q: %.80s %v", text, added, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	subject := fmt.Sprintf(`"subject":{"digest":%q}`, one.Digest)
	for text, want := range map[string]string{
		`{"artifactType":"a","config":{"mediaType":"c"},` + subject + `}`: "a",
		`{"config":{"mediaType":"c"},` + subject + `}`:                    "c",
		`{"manifests":[],` + subject + `}`:                                "",
	} {
		d, of, err := Describe([]byte(text), "m")
		if err != nil || d.ArtifactType != want || of == nil || of.Digest != one.Digest || d.MediaType != "m" ||
			d.Digest != digest.FromString(text) {
			t.Errorf("%s: %+v %+v %v", text, d, of, err)
		}
	}
	if _, of, err := Describe([]byte(`{}`), ""); of != nil || err != nil {
		t.Errorf("%v %v", of, err)
	}
	for _, text := range []string{"", "[]", `{"subject":{"digest":"sha256:../x"}}`, `{"subject":{}}`} {
		if _, _, err := Describe([]byte(text), ""); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
