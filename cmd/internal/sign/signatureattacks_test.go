package sign_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/supplytest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// writeIndexLayout writes a layout with one index, whose text is given, under the tag v1.
func writeIndexLayout(t *testing.T, dir, index string) {
	t.Helper()
	d := digest.FromString(index)
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "blobs", "sha256", d.Encoded()), index)
	clitest.WriteFile(t, filepath.Join(dir, "oci-layout"), `{"imageLayoutVersion":"1.0.0"}`)
	top, err := json.Marshal(v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{{
		MediaType: v1.MediaTypeImageIndex, Digest: d, Size: int64(len(index)),
		Annotations: map[string]string{v1.AnnotationRefName: "v1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "index.json"), strings.Replace(string(top), `"schemaVersion":0`,
		`"schemaVersion":2`, 1))
}

// The text of an image cannot look like a verdict about it.
func TestVerdictsCannotBeForged(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "p256.pub"), string(supplytest.Vectors(t)["keys"]["p256.pub"]))
	platform, err := json.Marshal("linux)\nsigned: sha256:" + strings.Repeat("0", 64) + "\ngood: ")
	if err != nil {
		t.Fatal(err)
	}
	writeIndexLayout(t, filepath.Join(dir, "image"), `{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageIndex+
		`","manifests":[{"mediaType":"`+v1.MediaTypeImageManifest+`","digest":"sha256:`+strings.Repeat("1", 64)+
		`","size":1,"platform":{"os":`+string(platform)+`,"architecture":"amd64"}}]}`)
	got := clitest.RunProgram(t, dir, "bindery", "verify", "oci:image:v1", "--key", "p256.pub")
	if got.Status != 1 || !strings.Contains(got.Stdout, `(linux)\nsigned: `) || strings.Contains(got.Stdout,
		"\nsigned:") {
		t.Errorf("%+v", got)
	}
}

// A key that is to sign and has no name, as of a variable that is not set, is an error: the image would not be signed.
func TestSigningWithoutAKeyIsAnError(t *testing.T) {
	dir := supplyDir(t)
	got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "registry.example.com/acme/catalog:v1",
		"--server", "none", "--sign-key=")
	if got.Status != 1 || !strings.Contains(got.Stderr, "--sign-key names no key") {
		t.Errorf("%+v", got)
	}
	if entries, err := filepath.Glob(filepath.Join(dir, "*.oci")); err != nil || len(entries) > 0 {
		t.Errorf("%v %v", entries, err)
	}
}

// A registry that does not say what is signed cannot hold up a command longer than --timeout.
func TestTimeoutOfSignatures(t *testing.T) {
	reg := testregistry.New(t)
	reg.AddLayout(t, supplytest.Vectors(t)["unsigned"])
	reg.Interfere(func(_ http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/referrers/") && !strings.HasSuffix(q.URL.Path, ".sig") {
			return false
		}
		<-q.Context().Done()
		panic(http.ErrAbortHandler)
	})
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "p256.pub"), string(supplytest.Vectors(t)["keys"]["p256.pub"]))
	clitest.WriteFile(t, filepath.Join(dir, "p256.key"), string(supplytest.Vectors(t)["keys"]["p256.pkcs8.pem"]))
	clitest.WriteFile(t, filepath.Join(dir, "predicate.json"), "{}")
	for _, args := range []string{"verify --key p256.pub --no-cache", "sign --sign-key p256.key --allow-plain-key",
		"attest --type https://example.com/a --predicate predicate.json --sign-key p256.key --allow-plain-key",
		"tree --no-cache"} {
		t.Run(args, func(t *testing.T) {
			begun := time.Now()
			got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(args), "--use-http", "--timeout", "500ms",
				reg.Host()+"/layout:v1")...)
			if got.Status != 1 || !strings.Contains(got.Stderr, "not done within 500ms") {
				t.Errorf("%+v", got)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A signature is of the content: an image of a layout whose manifest was replaced, or is missing, is not verified, and
// is not signed either.
func TestManifestOfALayoutIsCompared(t *testing.T) {
	keys := supplytest.Vectors(t)["keys"]
	for name, change := range map[string]func(path string) error{
		"replaced": func(path string) error { return os.WriteFile(path, []byte(`{"schemaVersion":2}`), 0o600) },
		"missing":  os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := supplytest.Unpack(t, "unsigned")
			work := t.TempDir()
			clitest.WriteFile(t, filepath.Join(work, "p256.pub"), string(keys["p256.pub"]))
			clitest.WriteFile(t, filepath.Join(work, "p256.key"), string(keys["p256.pkcs8.pem"]))
			sign := []string{"sign", "oci:" + dir + ":v1", "--sign-key", "p256.key", "--allow-plain-key",
				"--sign-identity", "registry.example.com/acme/catalog:v1"}
			check := []string{"verify", "oci:" + dir + ":v1", "--key", "p256.pub"}
			clitest.Done(t, work, "bindery", sign...)
			got := clitest.Done(t, work, "bindery", check...)
			d, ok := strings.CutPrefix(strings.Fields(got)[1], "sha256:")
			if !ok {
				t.Fatal(got)
			}
			if err := change(filepath.Join(dir, "blobs", "sha256", strings.TrimSuffix(d, ":"))); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{sign, check, {"tree", "oci:" + dir + ":v1"}} {
				if got := clitest.RunProgram(t, work, "bindery", args...); got.Status != 1 || got.Stdout != "" {
					t.Errorf("%v: %+v", args[0], got)
				}
			}
		})
	}
}

// An index that is not signed is accepted for its images only if every entry is: another program may choose the
// entry that is not.
func TestEveryEntryIsVerified(t *testing.T) {
	keys := supplytest.Vectors(t)["keys"]
	dir, work := supplytest.Unpack(t, "unsigned"), t.TempDir()
	clitest.WriteFile(t, filepath.Join(work, "p256.pub"), string(keys["p256.pub"]))
	clitest.WriteFile(t, filepath.Join(work, "p256.key"), string(keys["p256.pkcs8.pem"]))
	clitest.Done(t, work, "bindery", "sign", "oci:"+dir+":v1", "--sign-key", "p256.key", "--allow-plain-key", "--sign-format",
		"bundle")
	blob := func(d digest.Digest) string { return filepath.Join(dir, "blobs", "sha256", d.Encoded()) }
	read := func(path string, into any) {
		t.Helper()
		if err := json.Unmarshal([]byte(clitest.ReadFile(t, path)), into); err != nil {
			t.Fatal(err)
		}
	}
	write := func(v any) v1.Descriptor {
		t.Helper()
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		clitest.WriteFile(t, blob(digest.FromBytes(text)), string(text))
		return v1.Descriptor{Digest: digest.FromBytes(text), Size: int64(len(text))}
	}
	var layout, index v1.Index
	read(filepath.Join(dir, "index.json"), &layout)
	at := slices.IndexFunc(layout.Manifests,
		func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] == "v1" })
	signed := layout.Manifests[at]
	signed.Annotations = nil
	if signed.MediaType == v1.MediaTypeImageIndex {
		read(blob(signed.Digest), &index)
		signed = index.Manifests[0]
	}
	signed.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
	var m v1.Manifest
	read(blob(signed.Digest), &m)
	m.Annotations = map[string]string{"not": "signed"}
	other := write(m)
	other.MediaType, other.ArtifactType, other.Platform = v1.MediaTypeImageManifest, "application/x", signed.Platform
	for name, c := range map[string]struct {
		entries []v1.Descriptor
		status  int
	}{"all": {[]v1.Descriptor{signed}, 0}, "one": {[]v1.Descriptor{other, signed}, 1}} {
		t.Run(name, func(t *testing.T) {
			top := write(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
				Manifests: c.entries})
			top.MediaType, top.Annotations = v1.MediaTypeImageIndex, map[string]string{v1.AnnotationRefName: name}
			now := layout
			now.Manifests = append(slices.Clone(layout.Manifests), top)
			text, err := json.Marshal(now)
			if err != nil {
				t.Fatal(err)
			}
			clitest.WriteFile(t, filepath.Join(dir, "index.json"), string(text))
			for _, args := range [][]string{{"--key", "p256.pub"}, {"--signatures", "--trusted-key", "p256.pub"}} {
				got := clitest.RunProgram(t, work, "bindery", append([]string{"verify", "oci:" + dir + ":" + name}, args...)...)
				if got.Status != c.status || strings.HasPrefix(got.Stdout, "not signed") && c.status == 0 {
					t.Errorf("%v: %+v", args, got)
				}
			}
		})
	}
}
