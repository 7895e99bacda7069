package clitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// SignedWorld is a registry with a catalog, its bundle, a related image with two platforms, and an additional image, and
// an image set of them. Files of two keys, and of policies, are beside it, one directory above that of a run.
type SignedWorld struct {
	*testing.T
	Top    string // of the files
	Dir    string // of the runs, in it
	Source *testregistry.Registry
	Images []string // as the source names them
	env    []string // beside that of every test
	Runs   int      // that a test has counted
}

// States of the images of a world.
const (
	Unsigned      = "unsigned"
	Signed        = "signed"
	SignedByOther = "signed by another"
)

var SignedStates = []string{Unsigned, Signed, SignedByOther}

// NewSignedWorld makes a world whose images are signed as the state says: with the key a, which is trusted, or with b.
func NewSignedWorld(t *testing.T, state string) *SignedWorld {
	t.Helper()
	top := t.TempDir()
	w := &SignedWorld{T: t, Top: top, Dir: filepath.Join(top, "run"), Source: testregistry.New(t)}
	host := w.Source.Host()
	operand := w.Source.AddIndex(t, "acme/operand", "v1", nil, []testregistry.Image{
		{Layers: []map[string]string{{"x": "amd64"}}},
		{Platform: v1.Platform{OS: "linux", Architecture: "arm64"}, Layers: []map[string]string{{"x": "arm64"}}}})
	bundle := w.Source.AddImage(t, "acme/etcd", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	w.Source.AddImage(t, "acme/tool", "v1", testregistry.Image{Layers: []map[string]string{{"t": "tool"}}})
	base := OpmFor("amd64")
	base.Labels = map[string]string{TestConfigsLabel: "/configs"}
	of := func(name string) string {
		text := strings.NewReplacer("NAME", name, "IMAGE", host+"/acme/etcd@"+bundle.String()).Replace(OneBundle)
		return strings.Replace(text, `"properties":`, fmt.Sprintf(`"relatedImages":[{"name":"","image":"%s/acme/operand@%s"}],`+
			`"properties":`, host, operand), 1)
	}
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": of("etcd"),
		"configs/old/catalog.json": of("old")})
	w.Source.AddImage(t, "acme/catalog", "v1", base)
	w.Images = []string{host + "/acme/catalog:v1", host + "/acme/etcd@" + bundle.String(),
		host + "/acme/operand@" + operand.String(), host + "/acme/tool:v1"}
	WriteFile(t, filepath.Join(w.Top, "set.yaml"), strings.Replace(ExampleImageSet, "registry.example.com", host, 1)+
		"  additionalImages:\n  - name: "+host+"/acme/tool:v1\n")
	w.policies()
	w.Sign(state, w.Images...)
	w.Fresh()
	return w
}

// Fresh empties the directory of the runs.
func (w *SignedWorld) Fresh() {
	w.Helper()
	if err := errors.Join(os.RemoveAll(w.Dir), os.Mkdir(w.Dir, 0o755)); err != nil {
		w.Fatal(err)
	}
}

// policies writes two keys, a and b, and policies. docker.json wants the key a for registries and accepts layouts.
func (w *SignedWorld) policies() {
	w.Helper()
	for _, name := range []string{"a", "b"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			w.Fatal(err)
		}
		public, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			w.Fatal(err)
		}
		for file, block := range map[string]*pem.Block{name + ".key": {Type: "PRIVATE KEY", Bytes: private},
			name + ".pub": {Type: "PUBLIC KEY", Bytes: public}} {
			WriteFile(w.T, filepath.Join(w.Top, file), string(pem.EncodeToMemory(block)))
		}
	}
	key := fmt.Sprintf(`[{"type":"sigstoreSigned","keyPath":%q,"signedIdentity":{"type":"matchRepository"}}]`,
		filepath.Join(w.Top, "a.pub"))
	accept := `[{"type":"insecureAcceptAnything"}]`
	WriteFile(w.T, filepath.Join(w.Top, "docker.json"), `{"default":`+accept+`,"transports":{"docker":{"":`+key+`}}}`)
	WriteFile(w.T, filepath.Join(w.Top, "all.json"), `{"default":`+key+`}`)
	WriteFile(w.T, filepath.Join(w.Top, "accept.json"), `{"default":`+accept+`}`)
	WriteFile(w.T, filepath.Join(w.Top, "reject.json"), `{"default":[{"type":"reject"}]}`)
	WriteFile(w.T, filepath.Join(w.Top, "d", "a.yaml"), "default-docker: {use-sigstore-attachments: true}\n")
}

// Sign signs images, with the attached form, which policies read, and bundles.
func (w *SignedWorld) Sign(state string, images ...string) {
	w.Helper()
	key := map[string]string{Signed: "a.key", SignedByOther: "b.key"}[state]
	for _, image := range images {
		if key != "" {
			Done(w.T, w.Top, "bindery", "sign", image, "--sign-key", key,
				"--allow-plain-key", "--use-http", "-q")
		}
	}
}

// Run runs a command with an empty cache.
func (w *SignedWorld) Run(line string, more ...string) Result {
	w.Helper()
	return w.finish(append(append(strings.Fields(line), more...), "--use-http", "--no-cache", "-q"))
}

// Finish runs a command with the world's own environment.
func (w *SignedWorld) finish(args []string) Result {
	w.Helper()
	cmd := Command(w.Dir, "bindery", args...)
	cmd.Env = append(cmd.Env, w.env...)
	return Finish(w.T, cmd)
}

// Done runs a command that must succeed.
func (w *SignedWorld) Done(line string, more ...string) {
	w.Helper()
	if got := w.Run(line, more...); got.Status != 0 {
		w.Fatalf("%s: %+v", line, got)
	}
}

// Demanded are ways to demand signatures of the key a.
var Demanded = map[string][]string{
	"trusted key":           {"--trusted-key", "../a.pub"},
	"trusted key, required": {"--trusted-key", "../a.pub", "--require-signed"},
	"policy of registries":  {"--policy", "../docker.json", "--registries-d", "../d"},
	"policy of everything":  {"--policy", "../all.json", "--registries-d", "../d"},
}

// TwoDemands are the two kinds of them: by flags and by a policy.
var TwoDemands = []string{"trusted key", "policy of registries"}

// Content is what a registry has, without attachments.
func Content(r *testregistry.Registry) (out []string) {
	for _, name := range r.Repositories() {
		for _, tag := range r.Tags(name) {
			if !strings.HasSuffix(tag, ".sig") {
				out = append(out, name+":"+tag)
			}
		}
	}
	slices.Sort(out)
	return out
}

const (
	ToMedia     = "mirror run file://media -c ../set.yaml"
	FromMedia   = "mirror run --from media -c ../set.yaml docker://"
	ToRegistry  = "mirror run --workspace ws -c ../set.yaml docker://"
	ToPublished = "mirror publish --workspace fresh -c ../set.yaml docker://"
)
