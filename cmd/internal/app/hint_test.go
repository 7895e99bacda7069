package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Common first mistakes, and their hints.
func TestHints(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"images cat", `hint: did you mean "bindery list images"?`},
		{"unpack x", `hint: did you mean "bindery bundle unpack"?`},
		{"manifest inspect x", `hint: did you mean "inspect IMAGE"?`},
		{"login -p secret registry.example.com", "hint: other users of the machine read what is on a command line: pipe the password to --password-stdin"},
		{"sign --key k.key oci:x:v1", "hint: the private key is that of --sign-key"},
		{"sign -v oci:x:v1", `hint: "--log-level debug" says more`},
		{"catalog prune -p a,b cat", "hint: the packages that stay are those of --keep"},
		{"catalog prune --packages a,b cat", "hint: the packages that stay are those of --keep"},
		{"template semver x.yaml", "hint: its commands are render, convert\n"},
		{"bundle generate cat --default-channel x", `hint: did you mean "--default"?`},
		{"list bundles small.db ectd", `hint: did you mean "etcd"?`},
		{"list images small.db --channel aplha", `hint: did you mean "alpha"?`},
		{"graph small.db -p nosuch", "hint: there are "},
		{"graph small.db -p etcd -c stabel", "hint: there are alpha, "},
		{"graph small.db etdc", "hint: did you mean \"etcd\"?\n"},
		{"graph small.db --out etcd.png",
			"error: etcd.png: unsupported format png, expected (svg|html|mermaid|dot)\nhint: "},
		{"render cat --jobs -1", "error: invalid --jobs value -1, expected a positive number or 0"},
		{"validate bundle", `hint: "bundle" is a bundle: check it with "bundle validate"`},
		{"validate bundle/metadata", `hint: "bundle/metadata" is a part of the bundle "bundle"`},
		{"bundle validate bundle/manifests", `hint: "bundle/manifests" is a part of the bundle "bundle"`},
		{"render bundle/manifests/", `hint: "bundle/manifests" is a part of the bundle "bundle"`},
		{"bundle generate bundle/manifests", "hint: set -p PACKAGE and -c CHANNEL,..."},
		{"build bundle plain -t x:v1", "hint: set -p PACKAGE and -c CHANNEL,..."},
		{"validate plain/etcdclusters.etcd.database.coreos.com.crd.yaml", "hint: name the catalog directory"},
		{"graph plain/etcdclusters.etcd.database.coreos.com.crd.yaml", `and a template is for "template render"`},
		{"graph small.db.gz", `hint: the file is compressed: decompress it with "gzip -dc"`},
		{"template render other.yaml", "hint: the schemas of templates are "},
		{"template convert basic example.com/acme/catalog:v1", "bindery render REF | bindery template convert basic\n"},
		{"bundle unpack oci:x:v1 out", "hint: --to DIR names the directory to write to\n"},
		{"bundle unpack bundel -o out", "no such file or directory"},
		{"bundle unpack etcd:v1 -o out", "hint: the argument is an image, as REGISTRY/REPOSITORY:TAG or oci:DIR:TAG\n"},
		{"bundle unpack oci:cat.oci:v1 -o out", `error: "oci:cat.oci:v1" is a catalog image, not a bundle`},
		{"bundle validate oci:cat.oci:v1", `error: "oci:cat.oci:v1" is a catalog image, not a bundle`},
		{"bundle extract example.com/etcd:v1 -c etcd --dry-run",
			`hint: the argument is a directory; "bundle unpack REF -o DIR" writes`},
		{"migrate small.db", "hint: name an output directory, or an image with -t NAME\n"},
		{"catalog filter small.db -p etcd@foo", "hint: a range is such as \">=1.2.0 <2.0.0\""},
		{"catalog filter small.db -p etcd:aplha",
			`package "etcd" has no channel "aplha", only alpha, clusterwide-alpha, singlenamespace-alpha`},
		{"index deprecatetruncate -b etcdoperator.v0.9.0 -f small.db --dry-run", "hint: name bundles by their images"},
		{"validate checkout", `hint: .git is not part of a catalog: add a file .indexignore with the line ".git"`},
		{"build catalog described -t x:v1 --dry-run",
			`hint: every file in the directory is part of the catalog unless a file .indexignore excludes it, with the line "README.md"`},
		{"build catalog cat -t x:v1 --dry-run --max-layers 1", "hint: --max-layers allows more\n"},
		{"build catalog cat -t x:v1 --dry-run --max-layers 0",
			"error: invalid --max-layers value 0, expected a positive number\n"},
		{"inspect plain/etcdclusters.etcd.database.coreos.com.crd.yaml",
			"an archive of an image as oci-archive:FILE or docker-archive:FILE"},
		{"bundle unpack-job oci:etcd.oci:v1",
			`error: "oci:etcd.oci:v1" is not in a registry: a cluster cannot pull it`},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			if err := os.CopyFS(filepath.Join(dir, "bundle"),
				os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(dir, "plain"),
				os.DirFS(filepath.Join(dir, "bundle", "manifests"))); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(c.args, "cat.oci") {
				clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", "cat:v1")
			}
			clitest.WriteFile(t, filepath.Join(dir, "checkout", ".git", "HEAD"), "ref: refs/heads/main\n")
			clitest.WriteFile(t, filepath.Join(dir, "small.db.gz"), "\x1f\x8b\x08\x00\x00\x00\x00\x00")
			clitest.WriteFile(t, filepath.Join(dir, "other.yaml"), "schema: olm.template.other\n")
			clitest.WriteFile(t, filepath.Join(dir, "described", "README.md"), "# A catalog\n")
			got := clitest.RunProgram(t, dir, "bindery", strings.Fields(c.args)...)
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
				t.Errorf("%+v without %s", got, c.want)
			}
			if _, err := os.Lstat(filepath.Join(dir, "etcd.png")); err == nil {
				t.Error("an SVG was written under the name of another format")
			}
		})
	}
}

// The JSON error has the wrong reference as its object; an error about several references has none.
func TestObjectOfErrors(t *testing.T) {
	registry := testregistry.New(t)
	wrong := registry.Host() + "/acme/nosuch:v1"
	for args, object := range map[string]string{
		"render " + wrong:                               wrong,
		"render cat " + wrong:                           wrong,
		"render cat " + wrong + " " + wrong + "x":       "",
		"bundle validate " + wrong:                      wrong,
		"list packages nosuch":                          "nosuch",
		"list bundles small.db nosuch":                  "nosuch",
		"render docker://user:secret@example.com/x/y:v": "docker://***@example.com/x/y:v",
	} {
		t.Run(args, func(t *testing.T) {
			got := clitest.RunProgram(t, clitest.WorkDir(t), "bindery",
				append(strings.Fields(args), "--use-http", "--no-cache", "--error-format", "json")...)
			var e struct{ Object *string }
			if err := json.Unmarshal([]byte(got.Stderr), &e); err != nil || got.Status != 1 || e.Object == nil ||
				*e.Object != object || strings.Contains(got.Stderr, "secret") {
				t.Errorf("%v, want the object %q: %+v", err, object, got)
			}
		})
	}
}

func TestHintOfRefusedPush(t *testing.T) {
	registry := testregistry.New(t)
	registry.Interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	dir := clitest.WorkDir(t)
	if err := os.WriteFile(filepath.Join(dir, "none.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", registry.Host()+"/a/b:v1", "--push",
		"--use-http", "--authfile", "none.json")
	if got.Status != 1 || !strings.Contains(got.Stderr,
		"\nhint: provide credentials with --authfile FILE or $REGISTRY_AUTH_FILE") {
		t.Errorf("%+v", got)
	}
}

// A message tells users of builders with an image store that bindery stores nothing in one.
func TestImageBuilderIsNotUsed(t *testing.T) {
	for args, warned := range map[string]bool{
		"":                  true,
		" --output oci:out": false,
		" --dry-run":        false,
	} {
		got := clitest.RunProgram(t, clitest.BundleDir(t), "opm",
			strings.Fields("alpha bundle build -d bundle/manifests -t a.example/b:v1 -b podman"+args)...)
		if got.Status != 0 || strings.Contains(got.Stderr,
			"podman is not used: the image is written to a layout") != warned {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
