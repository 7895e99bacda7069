package sign_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	signcmd "github.com/operator-bindery/bindery/cmd/internal/sign"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// attachedDocument is a document that is attached to an image.
type attachedDocument struct {
	subject, kind string
	annotations   map[string]string
	content       string
}

// attachedTo returns the documents that hang on an image and on the images of an index, in the order of their types.
func attachedTo(t *testing.T, name string) (out []attachedDocument) {
	t.Helper()
	skip := true
	client, err := images.NewClient(
		images.ClientOptions{Policy: policy.Read, Options: registries.Options{Registry: registries.Config{SkipTLSVerify: &skip, PlainHTTP: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	r, err := signcmd.OpenAttached(ctx, client, name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, subject := range signcmd.ImageOf(r).Subjects() {
		list, err := r.Referrers(ctx, subject.Digest, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			text, _, err := r.Manifest(ctx, d.Digest.String())
			if err != nil {
				t.Fatal(err)
			}
			var m v1.Manifest
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			if m.Subject == nil || m.Subject.Digest != subject.Digest || len(m.Layers) != 1 ||
				m.Config.MediaType != v1.MediaTypeEmptyJSON || m.Layers[0].MediaType != m.ArtifactType {
				t.Errorf("%s", text)
			}
			blob, err := r.Blob(ctx, m.Layers[0], 0)
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(blob)
			if err != nil {
				t.Fatal(err)
			}
			if err := blob.Close(); err != nil {
				t.Fatal(err)
			}
			out = append(out, attachedDocument{subject.Digest.String(), m.ArtifactType, m.Annotations, string(content)})
		}
	}
	slices.SortStableFunc(out, func(x, y attachedDocument) int { return strings.Compare(x.kind, y.kind) })
	return out
}

// documentsOf returns the documents of a type by the digest of their subject.
func documentsOf(all []attachedDocument, kind string) map[string]string {
	out := map[string]string{}
	for _, d := range all {
		if d.kind == kind {
			out[d.subject] = d.content
		}
	}
	return out
}

const (
	spdxType      = "application/spdx+json"
	cycloneDXType = "application/vnd.cyclonedx+json"
	statementType = "application/vnd.in-toto+json"
)

// What a build attaches, and writes to files, is what "sbom" says of the image afterwards, in every byte: in a
// registry, in a layout and in an archive, for images of one platform and for indexes and each image of them.
func TestDocumentsOfABuildAreThoseOfItsImage(t *testing.T) {
	reg := testregistry.New(t)
	remote := reg.Host() + "/acme/catalog"
	for _, c := range []struct {
		name, build, image string
		subjects           int
	}{
		{"catalog in a layout", "catalog cat -t registry.example.com/acme/catalog:v1", "oci:catalog.oci:v1", 1},
		{"without a registry", "catalog cat -t catalog:v1 --server none", "oci:catalog.oci:v1", 1},
		{"database in an archive",
			"catalog small.db -t registry.example.com/a/b:v1 --output oci-archive:a.tar --server none",
			"oci-archive:a.tar:v1", 1},
		{"docker's format", "bundle etcd --push --use-http --format docker -t " + reg.Host() + "/acme/docker:v1",
			reg.Host() + "/acme/docker:v1", 1},
		{"bundle", "bundle etcd -t registry.example.com/acme/etcd:v1", "oci:etcd.oci:v1", 1},
		{"index", "catalog cat -t registry.example.com/acme/catalog:v1 --server none --compression auto",
			"oci:catalog.oci:v1", 3},
		{"registry", "catalog cat --push --use-http --compression auto --server none -t " + remote + ":v1",
			remote + ":v1", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := supplyDir(t)
			args := append(strings.Fields("build "+c.build), "--sbom", "spdx,cyclonedx", "--sbom-file", "a.spdx.json",
				"--sbom-file", "cyclonedx=a.cdx.json")
			clitest.Done(t, dir, "bindery", args...)
			place := c.image
			if kind, rest, local := strings.Cut(c.image, ":"); local && strings.HasPrefix(kind, "oci") {
				place = kind + ":" + filepath.Join(dir, rest)
			}
			all := attachedTo(t, place)
			for kind, format := range map[string]string{spdxType: "spdx", cycloneDXType: "cyclonedx"} {
				documents := documentsOf(all, kind)
				if len(documents) != c.subjects {
					t.Errorf("%d documents of the type %s", len(documents), kind)
				}
				later := clitest.Done(t, dir, "bindery", "sbom", c.image, "--format", format, "--use-http", "--no-cache")
				if file := clitest.ReadFile(t,
					filepath.Join(dir, "a."+map[string]string{"spdx": "spdx", "cyclonedx": "cdx"}[format]+
						".json")); file != later {
					t.Errorf("--sbom-file has\n%s\nand sbom says\n%s", file, later)
				}
				if !slices.Contains(slices.Collect(mapValues(documents)), later) {
					t.Errorf("no document of %d is that of sbom", len(documents))
				}
				for subject, document := range documents {
					if !strings.HasPrefix(c.image, "oci") {
						one := clitest.Done(t, dir, "bindery", "sbom", strings.TrimSuffix(c.image, ":v1")+"@"+subject,
							"--format", format, "--use-http", "--no-cache")
						if one != document {
							t.Errorf("the document of %s is\n%s\nand sbom says\n%s", subject, document, one)
						}
					}
				}
			}
		})
	}
}

func mapValues(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

// supplyDir is a working directory with a catalog, a database and a bundle.
func supplyDir(t *testing.T) string {
	t.Helper()
	dir := clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "etcd"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Two builds in different directories have equal bills of materials and equal provenance, whatever the time is; nothing
// in them is of the machine.
func TestDocumentsDoNotDependOnTheMachine(t *testing.T) {
	var first []attachedDocument
	for range 2 {
		dir := supplyDir(t)
		abs := filepath.Join(dir, "cat")
		clitest.Done(t, dir, "bindery", "build", "catalog", abs, "-t", "registry.example.com/acme/catalog:v1", "--sbom", "spdx",
			"--sbom", "cyclonedx", "--provenance", "--label", "b=2", "--label", "a=1", "--jobs", "3")
		all := attachedTo(t, "oci:"+filepath.Join(dir, "catalog.oci:v1"))
		if len(all) != 3 {
			t.Fatalf("%d documents", len(all))
		}
		for n, d := range all {
			if strings.Contains(d.content, dir) {
				t.Errorf("%s has the path of a directory:\n%s", d.kind, d.content)
			}
			if first != nil && (d.content != first[n].content || d.subject != first[n].subject) {
				t.Errorf("%s differs:\n%s\n%s", d.kind, d.content, first[n].content)
			}
		}
		first = all
	}
}

// With a key, bills of materials and provenance are also signed, and the unsigned statement is left out.
func TestSignedDocuments(t *testing.T) {
	dir := supplyDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "pass"), "secret")
	clitest.Done(t, dir, "bindery", "keys", "generate", "--name", "test", "--sign-passphrase-file", "pass")
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "--server", "none", "-t", "registry.example.com/acme/catalog:v1",
		"--sbom", "spdx", "--provenance",
		"--sign-key", "test.key", "--sign-passphrase-file", "pass", "--metadata-file", "account")
	for _, kind := range []string{"spdxjson", "slsaprovenance1"} {
		clitest.Done(t, dir, "bindery", "verify", "oci:catalog.oci:v1", "--key", "test.pub", "--type", kind)
	}
	all := attachedTo(t, "oci:"+filepath.Join(dir, "catalog.oci:v1"))
	if len(documentsOf(all, statementType)) != 0 || len(documentsOf(all, spdxType)) != 1 {
		t.Errorf("%d documents", len(all))
	}
	var account struct {
		Signatures []struct{ PredicateType string }
	}
	if err := json.Unmarshal([]byte(clitest.ReadFile(t, filepath.Join(dir, "account"))), &account); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, s := range account.Signatures {
		kinds = append(kinds, s.PredicateType)
	}
	for _, want := range []string{"https://slsa.dev/provenance/v1", "https://spdx.dev/Document"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("the account has %q", kinds)
		}
	}
}

// What cannot work is refused before any work, and nothing is written.
func TestRefusedDocuments(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--output docker-archive:a.tar --sbom spdx", "keeps no signatures or other attachments"},
		{"--output dir:out --provenance", "keeps no signatures or other attachments"},
		{"--sbom xml", "expected (spdx|cyclonedx)"},
		{"--sbom-file spdx=", "names no file"},
		{"--sbom-file a.json --sbom-file ./a.json", "given twice"},
		{"--sbom-file cat/a.json", "inside it"},
		{"--sbom-file missing/a.json", "no such file"},
		{"--builder-id https://example.com", "no effect without --provenance"},
		{"--provenance --builder-id me", "expected a URI"},
		{"--provenance --builder-id https://user:secret@ci.example.com", "--builder-id has credentials"},
	} {
		t.Run(c.args, func(t *testing.T) {
			dir := supplyDir(t)
			before := clitest.Snapshot(t, dir)
			got := clitest.RunProgram(t, dir, "bindery",
				append(strings.Fields("build catalog cat -t registry.example.com/a:v1 --server none"),
					strings.Fields(c.args)...)...)
			if got.Status == 0 || !strings.Contains(got.Stderr, c.want) || got.Stdout != "" {
				t.Errorf("%+v", got)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// A destination that keeps no attachments can have a bill of materials in a file.
func TestSBOMFileBesideAnArchive(t *testing.T) {
	dir := supplyDir(t)
	clitest.Done(t, dir, "bindery", "build", "bundle", "etcd", "-t", "registry.example.com/acme/etcd:v1", "--output",
		"docker-archive:etcd.tar", "--sbom-file", "cyclonedx=etcd.json")
	if text := clitest.ReadFile(t, filepath.Join(dir, "etcd.json")); !strings.Contains(text, `"bomFormat":"CycloneDX"`) ||
		!strings.Contains(text, "pkg:oci/etcd@sha256:") {
		t.Errorf("%s", text)
	}
}

// The documents of an edited index, of a composition and of a migration are made in the same way.
func TestDocumentsOfEveryCommand(t *testing.T) {
	dir := supplyDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"),
		"repo: registry.example.com/acme/all\ntag: v1\nreferences:\n- name: etcd\n  image: oci:one.oci:v1\n")
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "--server", "none", "-t", "x/one:v1")
	for command, image := range map[string]string{
		"build compose compose.yaml --output oci:all:v1":                                         "oci:all:v1",
		"index prune -f oci:one.oci:v1 -p etcd -t registry.example.com/acme/p:v1 --output oci:p": "oci:p:v1",
		"migrate small.db -t registry.example.com/acme/m:v1 --output oci:m":                      "oci:m:v1",
	} {
		t.Run(command, func(t *testing.T) {
			clitest.Done(t, dir, "bindery",
				append(strings.Fields(command), "--server", "none", "--sbom", "cyclonedx", "--provenance")...)
			all := attachedTo(t, strings.Replace(image, "oci:", "oci:"+dir+"/", 1))
			if len(all) != 2 {
				t.Fatalf("%+v", all)
			}
			later := clitest.Done(t, dir, "bindery", "sbom", image, "--format", "cyclonedx")
			if documentsOf(all, cycloneDXType)[all[0].subject] != later {
				t.Errorf("sbom says\n%s", later)
			}
		})
	}
}

func TestSBOMCommand(t *testing.T) {
	dir := supplyDir(t)
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", "catalog:v1", "--server", "none", "--compression", "auto")
	for _, c := range []struct {
		args, stderr string
		status       int
	}{
		{"oci:catalog.oci:v1 --platform linux/s390x", "there is no image for linux/s390x in it", 1},
		{"cat", "no image", 1},
		{"oci:catalog.oci:v1 --format xml", "expected (spdx|cyclonedx)", 1},
		{"oci:catalog.oci:v1 --name quay.io/x:v1", "without a tag", 1},
		{"oci:missing:v1", "missing", 1},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"sbom"}, strings.Fields(c.args)...)...)
		if got.Status != c.status || got.Stdout != "" || !strings.Contains(got.Stderr, c.stderr) {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
	whole := clitest.Done(t, dir, "bindery", "sbom", "oci:catalog.oci:v1")
	one := clitest.Done(t, dir, "bindery", "sbom", "oci:catalog.oci:v1", "--platform", "linux/amd64")
	if whole == one || !strings.Contains(whole, `"name":"etcd"`) || !strings.Contains(one, `"name":"etcd"`) {
		t.Errorf("the index\n%s\nand the image\n%s", whole, one)
	}
	clitest.Done(t, dir, "bindery", "sbom", "oci:catalog.oci:v1", "-o", "out.json")
	if clitest.ReadFile(t, filepath.Join(dir, "out.json")) != whole {
		t.Error("-o has another document")
	}
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if dated := clitest.Done(t, dir, "bindery", "sbom", "oci:catalog.oci:v1"); !strings.Contains(dated,
		"1970-01-02T00:00:00Z") {
		t.Errorf("%s", dated)
	}
}
