package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// What an open name gives before the policy has answered has no content, and cannot be copied. This file does not
// compile otherwise: a selector that an [images.Unverified] has too would be ambiguous.
var _ = []any{unverified{}.Top, unverified{}.Reader, unverified{}.Manifest, unverified{}.Head, unverified{}.Blob,
	unverified{}.Image, unverified{}.Choose, unverified{}.Survey, unverified{}.Describe, unverified{}.Can,
	unverified{}.Copy, unverified{}.Name}

type unverified struct {
	*images.Unverified
	absent
}

// absent has what an image has that the policy has accepted.
type absent struct {
	Top, Reader, Manifest, Head, Blob, Image, Choose, Survey, Describe, Can, Copy, Name struct{}
}

// The entrances give what the policy has accepted.
var (
	_ func(*images.Client, context.Context, string) (*images.Source, error)                = (*images.Client).Open
	_ func(*images.Client, context.Context, string, []v1.Platform) (*images.Source, error) = (*images.Client).OpenPart
	_ func(*images.Client, context.Context, string, v1.Platform) (*images.Image, error)    = (*images.Client).Image
	_ func(*images.Client, context.Context, string, images.Chooser) (*images.Image, error) = (*images.Client).Choose
	_ func(*images.Client, context.Context, string) (*images.Unverified, error)            = (*images.Client).OpenUnverified
	_ store.Reader                                                                         = (*images.Source)(nil)
)

// Every method of a client that takes a name and gives something of an image either asks the policy or says in its name
// that it does not.
func TestEntrancesSayThatTheyDoNotAsk(t *testing.T) {
	judged := map[reflect.Type]bool{}
	for _, one := range []any{new(images.Source), new(images.Image), new(images.Description)} {
		judged[reflect.TypeOf(one)] = true
	}
	judged[reflect.TypeFor[images.CopyResult]()] = true
	known := []string{"Opened"} // of what was opened by one of the others
	plain := []reflect.Type{reflect.TypeFor[error](), reflect.TypeFor[bool]()}
	of := reflect.TypeFor[*images.Client]()
	for i := range of.NumMethod() {
		m := of.Method(i)
		for n := range m.Type.NumOut() {
			out := m.Type.Out(n)
			if strings.Contains(m.Name, "Unverified") || slices.Contains(known, m.Name) || judged[out] ||
				slices.Contains(plain, out) || m.Name == "Transports" {
				continue
			}
			t.Errorf("%s returns %s: is the policy asked?", m.Name, out)
		}
	}
}

// unverifiedUses are the files that open images without the policy, with the reason.
var unverifiedUses = map[string]string{
	"build/previous.go":                     "whether there is an image, after it could not be opened",
	"migrate/jobs/decide.go":                "whether an output is still what was written",
	"cmd/internal/sign/verifysignatures.go": "what is attached to an image: signatures are verified by the keys that are given",
	"mirror/collect.go":                     "a tag is resolved, and the image is opened by its digest",
	"mirror/collectreleases.go":             "a tag is resolved, and the release is opened by its digest",
	"mirror/collectcharts.go":               "the versions of a chart are listed, and one is opened by its tag",
	"cmd/internal/ocmirror/listcatalogs.go": "whether the vendor has a catalog of a version",
	"mirror/places.go":                      "a tag is compared with what is there",
	"images/repository.go":                  "an image that is signed or attached to",
	"images/open.go":                        "", "images/unverified.go": "", "images/candidate.go": "", "images/source.go": "", "images/doc.go": "",
}

// A new use of what was not judged is noticed.
func TestUsesOfWhatWasNotJudged(t *testing.T) {
	root, found := "../../..", map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		if err == nil && (strings.Contains(string(text), ".OpenUnverified(") || strings.Contains(string(text), ".UnverifiedDigest(") ||
			strings.Contains(string(text), ".UnverifiedHead(")) {
			rel, _ := filepath.Rel(root, name)
			found[filepath.ToSlash(rel)] = true
			if _, ok := unverifiedUses[filepath.ToSlash(rel)]; !ok {
				t.Errorf("%s opens images without the policy: what does it do with them?", rel)
			}
		}
		return err
	})
	if err != nil || len(found) < 5 {
		t.Errorf("%v, %v", found, err)
	}
}

// indexShapes are indexes without a signature of their own, of a signed image, an unsigned one, and each other; and
// whether what is in them vouches for them.
var indexShapes = []struct {
	name    string
	entries []string
	vouched bool
}{
	{"empty", nil, false},
	{"of-empty", []string{"empty"}, false},
	{"of-of-empty", []string{"of-empty"}, false},
	{"of-signed", []string{"signed"}, true},
	{"of-of-signed", []string{"of-signed"}, true},
	{"signed-and-empty", []string{"signed", "empty"}, false},
	{"signed-and-of-empty", []string{"signed", "of-empty"}, false},
	{"of-unsigned", []string{"unsigned"}, false},
	{"signed-and-unsigned", []string{"signed", "unsigned"}, false},
	{"of-signed-empty", []string{"signed-empty"}, true},
}

// addShapes adds the indexes to the repository of the tool.
func addShapes(w *clitest.SignedWorld) {
	w.Helper()
	made := map[string]v1.Descriptor{}
	add := func(name string, kind string, text []byte) {
		d := w.Source.AddManifest("acme/tool", name, kind, text)
		made[name] = v1.Descriptor{MediaType: kind, Digest: d, Size: int64(len(text))}
	}
	of := func(name, tag string) {
		text := w.Source.Manifest("acme/tool", tag)
		made[name] = v1.Descriptor{MediaType: v1.MediaTypeImageManifest, Digest: digest.FromBytes(text), Size: int64(len(text)),
			Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}
	}
	index := func(entries []string, note string) []byte {
		var parts []string
		for _, name := range entries {
			d := made[name]
			platform := ""
			if d.Platform != nil {
				platform = `,"platform":{"os":"linux","architecture":"amd64"}`
			}
			parts = append(parts, fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d%s}`, d.MediaType, d.Digest, d.Size, platform))
		}
		return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[%s]%s}`, v1.MediaTypeImageIndex,
			strings.Join(parts, ","), note)
	}
	w.AddImage("acme/tool", "unsigned", "another")
	of("signed", "v1")
	of("unsigned", "unsigned")
	add("signed-empty", v1.MediaTypeImageIndex, index(nil, `,"annotations":{"a":"b"}`))
	w.Sign(clitest.Signed, w.Source.Host()+"/acme/tool:signed-empty")
	for _, s := range indexShapes {
		add(s.name, v1.MediaTypeImageIndex, index(s.entries, ""))
	}
}

// An index that no signed manifest vouches for needs a signature of its own, wherever it is and whatever is done.
func TestIndexesThatNothingVouchesFor(t *testing.T) {
	lines := map[string]string{"digest": "digest IMAGE", "copy": "copy IMAGE oci:out:v1", "verify": "verify --signatures IMAGE",
		"inspect": "inspect IMAGE", "to a registry": "copy IMAGE docker://TARGET/x:v1", "mirror": "mirror run --workspace ws -c set.yaml docker://TARGET",
		"mirror to files": "mirror run -c set.yaml file://media"}
	for how, demand := range clitest.Demanded {
		if how != "policy of registries" {
			demand = append(slices.Clone(demand), "--require-signed")
		}
		for _, place := range []string{"registry", "layout"} {
			t.Run(how+", "+place, func(t *testing.T) {
				t.Parallel()
				w, target := clitest.NewSignedWorld(t, clitest.Signed), testregistry.New(t)
				addShapes(w)
				for _, s := range indexShapes {
					image := w.Source.Host() + "/acme/tool:" + s.name
					if place == "layout" {
						if how == "policy of registries" {
							continue // it accepts layouts
						}
						at := "oci:" + filepath.Join(w.Top, "lay-"+s.name) + ":v1"
						w.Done("copy " + image + " " + at)
						image = at
					}
					for what, line := range lines {
						switch {
						case what == "inspect" && s.vouched && !strings.HasSuffix(s.name, "of-signed"):
							continue // there is no image in it
						case strings.HasPrefix(what, "mirror") && place == "layout":
							continue
						case !slices.Contains(clitest.TwoDemands, how) && what != "digest" && what != "copy":
							continue
						case how == "policy of everything" && place == "layout" && s.vouched:
							continue // the policy wants names of registries
						case what == "verify" && strings.HasPrefix(how, "trusted"):
							continue // it needs a key, with which it verifies itself
						}
						w.Fresh()
						target.Clear()
						clitest.WriteFile(t, filepath.Join(w.Dir, "set.yaml"), "kind: ImageSetConfiguration\napiVersion: "+
							"mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n  - name: "+image+"\n")
						got := w.Run(strings.NewReplacer("IMAGE", image, "TARGET", target.Host()).Replace(line), demand...)
						if accepted := got.Status == 0; accepted != s.vouched {
							t.Errorf("%s of %s: %+v", what, s.name, got)
						}
						if s.vouched {
							continue
						}
						if !strings.Contains(got.Stdout+got.Stderr, "signature policy: ") || strings.Contains(got.Stdout, "sha256:") && what != "verify" {
							t.Errorf("%s of %s: %+v", what, s.name, got)
						}
						if there := clitest.Content(target); len(there) > 0 {
							t.Errorf("%s of %s: the target has %v", what, s.name, there)
						}
						if _, err := os.Lstat(filepath.Join(w.Dir, "out")); !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("%s of %s: there is an output", what, s.name)
						}
					}
				}
			})
		}
	}
}
