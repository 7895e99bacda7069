package imagemap_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/mirror/imagemap"
)

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestMap(t *testing.T) {
	for name, test := range map[string]struct {
		images []string
		o      imagemap.Options
		want   []string // SOURCE=DESTINATION
		err    []string
	}{
		"a tag stays": {[]string{"quay.io/a/b:v1"}, imagemap.Options{To: "m.test:5000"},
			[]string{"quay.io/a/b:v1=m.test:5000/a/b:v1"}, nil},
		"a digest becomes a tag": {[]string{"quay.io/a/b@sha256:" + hexA}, imagemap.Options{To: "m.test/p/q/"},
			[]string{"quay.io/a/b@sha256:" + hexA + "=m.test/p/q/a/b:sha256." + hexA}, nil},
		"a digest wins over a tag": {[]string{"quay.io/a/b:v1@sha256:" + hexA}, imagemap.Options{To: "docker://m.test"},
			[]string{"quay.io/a/b:v1@sha256:" + hexA + "=m.test/a/b:sha256." + hexA}, nil},
		"a long digest is cut to the length of a tag": {[]string{"quay.io/a/b@sha512:" + hexA + hexB},
			imagemap.Options{To: "m.test"},
			[]string{"quay.io/a/b@sha512:" + hexA + hexB + "=m.test/a/b:" + ("sha512." + hexA + hexB)[:128]}, nil},
		"neither is latest": {[]string{"quay.io/a/b"}, imagemap.Options{To: "m.test"},
			[]string{"quay.io/a/b:latest=m.test/a/b:latest"}, nil},
		"short names": {[]string{"busybox:1"}, imagemap.Options{To: "localhost"},
			[]string{"docker.io/library/busybox:1=localhost/library/busybox:1"}, nil},
		"the same twice": {[]string{"quay.io/a/b", "docker://quay.io/a/b:latest"}, imagemap.Options{To: "m.test"},
			[]string{"quay.io/a/b:latest=m.test/a/b:latest"}, nil},
		"parts are joined": {[]string{"quay.io/a/b/c:v1", "quay.io/d:v1"},
			imagemap.Options{To: "m.test/p", MaxComponents: 2},
			[]string{"quay.io/a/b/c:v1=m.test/p/a-b-c:v1", "quay.io/d:v1=m.test/p/d:v1"}, nil},
		"with their host": {[]string{"quay.io:443/a:v1", "quay.io/a:v1"},
			imagemap.Options{To: "m.test", KeepHost: true},
			[]string{"quay.io:443/a:v1=m.test/quay.io-443/a:v1", "quay.io/a:v1=m.test/quay.io/a:v1"}, nil},
		"too few parts": {[]string{"quay.io/a:v1"}, imagemap.Options{To: "m.test/p/q", MaxComponents: 2}, nil,
			[]string{"2 parts of a path are too few"}},
		"negative parts": {[]string{"quay.io/a:v1"}, imagemap.Options{To: "m.test", MaxComponents: -1}, nil,
			[]string{"too few"}},
		"the same content": {[]string{"quay.io/a/b@sha256:" + hexA, "gcr.io/a/b@sha256:" + hexA},
			imagemap.Options{To: "m.test"}, []string{"quay.io/a/b@sha256:" + hexA + "=m.test/a/b:sha256." + hexA,
				"gcr.io/a/b@sha256:" + hexA + "=m.test/a/b:sha256." + hexA}, nil},
		"one name for two": {[]string{"quay.io/a/b:v1", "gcr.io/a/b:v1", "nosuch/:x"}, imagemap.Options{To: "m.test"},
			nil, []string{"quay.io/a/b:v1 and gcr.io/a/b:v1 would both be m.test/a/b:v1", `image "nosuch/:x"`}},
		"joined to one name": {[]string{"quay.io/a/b-c:v1", "quay.io/a-b/c:v1"},
			imagemap.Options{To: "m.test", MaxComponents: 1}, nil, []string{"would both be m.test/a-b-c:v1"}},
		"no registry":      {nil, imagemap.Options{To: ""}, nil, []string{"is no registry"}},
		"a short registry": {nil, imagemap.Options{To: "mirror/p"}, nil, []string{"is no registry"}},
		"a digest in it":   {nil, imagemap.Options{To: "m.test/a@sha256:" + hexA}, nil, []string{"is no registry"}},
		"a tag in it":      {nil, imagemap.Options{To: "m.test/a:v1"}, nil, []string{"is no registry"}},
		"upper case in it": {nil, imagemap.Options{To: "m.test/UPPER"}, nil, []string{"is no registry"}},
		"longer than a name may be": {[]string{"quay.io/" + strings.Repeat("a/", 100) + "b:v1"},
			imagemap.Options{To: "m.test/" + strings.Repeat("b/", 40) + "c"}, nil,
			[]string{"would be"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := imagemap.Map(test.images, test.o)
			if test.err != nil {
				if !errors.Is(err, imagemap.ErrInvalid) {
					t.Fatalf("got %v, %v", got, err)
				}
				for _, want := range test.err {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is not in %q", want, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if lines, want := string(imagemap.Lines(got)), strings.Join(test.want, "\n")+"\n"; lines != want {
				t.Errorf("got\n%swant\n%s", lines, want)
			}
		})
	}
}

func mapped(t *testing.T) []imagemap.Mapping {
	t.Helper()
	m, err := imagemap.Map([]string{"quay.io/a/b:v1", "quay.io/a/b@sha256:" + hexA, "gcr.io/x/y@sha256:" + hexB,
		"quay.io/c:v1"}, imagemap.Options{To: "m.test/p"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConfigurationsOfClusters(t *testing.T) {
	const digests = `  - mirrors:
    - m.test/p/x/y
    source: gcr.io/x/y
  - mirrors:
    - m.test/p/a/b
    source: quay.io/a/b
`
	for want, write := range map[string]func(string, []imagemap.Mapping) ([]byte, error){
		"apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata:\n  name: " +
			"acme\nspec:\n  imageDigestMirrors:\n" + digests: imagemap.DigestMirrorSet,
		"apiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata:\n  name: " +
			"acme\nspec:\n  repositoryDigestMirrors:\n" + digests: imagemap.ContentSourcePolicy,
		"apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata:\n  name: " +
			"acme\nspec:\n  imageTagMirrors:\n" +
			"  - mirrors:\n    - m.test/p/a/b\n    source: quay.io/a/b\n  - mirrors:\n    - m.test/p/c\n    source: " +
			"quay.io/c\n": imagemap.TagMirrorSet,
	} {
		got, err := write("acme", mapped(t))
		if err != nil || string(got) != want {
			t.Errorf("got\n%s%v\nwant\n%s", got, err, want)
		}
	}
}

// podman's library finds the mirrors in the generated registries.conf.
func TestRegistriesConfIsRead(t *testing.T) {
	for _, insecure := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "registries.conf")
		if err := os.WriteFile(path, imagemap.RegistriesConf(mapped(t), insecure), 0o600); err != nil {
			t.Fatal(err)
		}
		sys := &types.SystemContext{SystemRegistriesConfPath: path, SystemRegistriesConfDirPath: t.TempDir()}
		for ref, want := range map[string]string{"quay.io/a/b:v1": "m.test/p/a/b",
			"gcr.io/x/y@sha256:" + hexB: "m.test/p/x/y", "quay.io/other:v1": ""} {
			r, err := sysregistriesv2.FindRegistry(sys, ref)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case want == "" && r != nil, want != "" && (r == nil || len(r.Mirrors) != 1 ||
				r.Mirrors[0].Location != want || r.Mirrors[0].Insecure != insecure):
				t.Errorf("%s: got %+v, want %q", ref, r, want)
			}
		}
	}
}
