package payload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/testing/releasetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/mirror/releases/payload"
)

const digest = "@sha256:b468140dc7d4999406e30cd502f483256febef5ff34f60c50a64e098828a0d5a"

// references is the text of an ImageStream with components NAME=IMAGE.
func references(components ...string) []byte {
	var tags []string
	for _, c := range components {
		name, image, _ := strings.Cut(c, "=")
		tags = append(tags, fmt.Sprintf(`{"name":%q,"from":{"kind":"DockerImage","name":%q}}`, name, image))
	}
	return []byte(`{"kind":"ImageStream","spec":{"tags":[` + strings.Join(tags, ",") + `]}}`)
}

func boot(stream string) []byte {
	return []byte("kind: ConfigMap\ndata:\n  stream: |\n    " + stream + "\n")
}

// A release is read out of its image, and one for several architectures out of each of its images.
func TestRead(t *testing.T) {
	r := releasetest.Source(t)
	skip := true
	client, err := images.NewClient(images.ClientOptions{NoPolicy: true, AnyPlatform: true,
		Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	read := func(name string) (*payload.Payload, error) {
		t.Helper()
		at, err := client.Open(t.Context(), r.Host()+"/"+name)
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		return payload.Read(t.Context(), at, at.Top)
	}
	for _, tag := range []string{"4.16.2-x86_64", "4.16.2-multi"} {
		p, err := read(releasetest.Releases + ":" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Components) != 5 || p.Components[0].Name != "cli" || len(p.KubeVirt) != 2 ||
			p.KubeVirt["x86_64"].Digest != releasetest.Images(t).KubeVirt["x86_64"] || len(p.Files) != 3 {
			t.Errorf("%s: %+v", tag, p)
		}
	}
	if _, err := read(releasetest.Releases + ":4.17.3-x86_64"); !errors.Is(err, fault.ErrInvalid) ||
		!strings.Contains(err.Error(), "no file release-manifests/image-references") {
		t.Errorf("got %v", err)
	}
	// The images of an index that name other components are no release.
	other := func(arch, image string) testregistry.Image {
		return testregistry.Image{Platform: v1.Platform{OS: "linux", Architecture: arch}, Layers: []map[string]string{{
			"release-manifests/image-references": string(references("a=" + image))}}}
	}
	r.AddIndex(t, "x", "v1", nil, []testregistry.Image{other("amd64", "h/a:v1"), other("arm64", "h/a:v2")})
	if _, err := read("x:v1"); err == nil || !strings.Contains(err.Error(), "the images of the release differ") {
		t.Errorf("got %v", err)
	}
}

// What is no release says which component or file is wrong.
func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		references, boot []byte
		message          string
	}{
		"no JSON":      {[]byte("x"), nil, "image-references: invalid"},
		"nothing":      {references(), nil, "the release has no components"},
		"empty":        {references("cli="), nil, `component "cli": invalid: reference name is empty`},
		"no registry":  {references("cli=cli" + digest), nil, "names no registry"},
		"no tag":       {references("cli=h/cli"), nil, "tag and digest are empty"},
		"a layout":     {references("cli=oci:///etc"), nil, "names no registry"},
		"twice":        {references("cli=h/cli"+digest, "cli=h/cli"+digest), nil, `two components are called "cli"`},
		"no name":      {references("=h/cli" + digest), nil, "components are called"},
		"too many":     {references(strings.Split(strings.Repeat("a=b ", 5001), " ")...), nil, "limit"},
		"boot no YAML": {references("a=h/a" + digest), []byte("a: [\n"), "coreos-bootimages.yaml: invalid"},
		"boot stream":  {references("a=h/a" + digest), boot("x"), "data.stream"},
		"boot registry": {references("a=h/a" + digest),
			boot(`{"architectures":{"x86_64":{"images":{"kubevirt":{"digest-ref":"x:v1"}}}}}`), `kubevirt image of "x86_64"`},
	} {
		files := map[string][]byte{payload.References: test.references}
		if test.boot != nil {
			files[payload.BootImages] = test.boot
		}
		p, err := payload.Parse(files)
		if err == nil {
			err = p.BootImagesError // of no matter to those who do not ask for them
		}
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: got %v, expected %q", name, err, test.message)
		}
	}
	// The version is that of both files.
	named := strings.Replace(string(references("a=h/a"+digest)), `"spec"`, `"metadata":{"name":"4.16.1"},"spec"`, 1)
	for metadata, want := range map[string]string{"": "4.16.1", `{"version":"4.16.1"}`: "4.16.1", `{}`: "4.16.1",
		`{"version":"4.99.9"}`: "", `{`: ""} {
		files := map[string][]byte{payload.References: []byte(named)}
		if metadata != "" {
			files[payload.Metadata] = []byte(metadata)
		}
		p, err := payload.Parse(files)
		if want == "" && (err == nil || !errors.Is(err, fault.ErrInvalid)) || want != "" && (err != nil || p.Version != want) {
			t.Errorf("%q: %+v, %v", metadata, p, err)
		}
	}
	// A component by tag, and boot images without one for virtual machines, are taken.
	p, err := payload.Parse(map[string][]byte{payload.References: references("a=h/a:v1"),
		payload.BootImages: boot(`{"architectures":{"aarch64":{"images":{}}}}`)})
	if err != nil || p.Components[0].Image.Tag != "v1" || len(p.KubeVirt) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(references("cli=h/cli"+digest), boot(`{"architectures":{"x86_64":{"images":{"kubevirt":{"digest-ref":"h/k`+digest+`"}}}}}`))
	f.Add([]byte(`{"spec":{"tags":[{}]}}`), []byte("data: {stream: '{}'}"))
	f.Fuzz(func(t *testing.T, references, boot []byte) {
		p, err := payload.Parse(map[string][]byte{payload.References: references, payload.BootImages: boot})
		if err != nil {
			return
		}
		for _, c := range p.Components {
			if c.Name == "" || c.Image.Host == "" || c.Image.Tag == "" && c.Image.Digest == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}
