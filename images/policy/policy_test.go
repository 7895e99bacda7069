package policy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/transport"
)

// written reads a policy with a text.
func written(t *testing.T, text string) (trust.Policy, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(t.Context(), path)
}

// The error about a file that is no policy names the file.
func TestInvalidPolicies(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "it is empty, which is no policy",
		"{":                           "not JSON: unexpected end of JSON input, after 1 bytes",
		`{"default":[]}`:              "requirements",
		`{"default":[{"type":"x"}]}`:  "x",
		`{"default":"reject","x":"y"`: "not JSON",
	} {
		_, err := written(t, text)
		var file *trust.PolicyFileError
		if !errors.As(err, &file) || !errors.Is(err, trust.ErrPolicy) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Read(t.Context(), filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// publicKey returns the text of a new public key.
func publicKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// The requirements for an image are those of the most specific scope. One that is decided by its name is not read, and
// one that must be signed is refused without a signature.
func TestRulesAndAnswers(t *testing.T) {
	dir := t.TempDir()
	p, err := written(t, fmt.Sprintf(`{"default":[{"type":"reject"}],"transports":{
		"docker":{
			"quay.io":[{"type":"insecureAcceptAnything"}],
			"quay.io/signed":[{"type":"sigstoreSigned","keyData":%[1]q}],
			"quay.io/lost":[{"type":"sigstoreSigned","keyPath":%[2]q}],
			"quay.io/lost/many":[{"type":"sigstoreSigned","keyPaths":[%[2]q]}]},
		"dir":{"":[{"type":"insecureAcceptAnything"}]}}}`,
		base64.StdEncoding.EncodeToString(publicKey(t)), filepath.Join(dir, "absent.pub")))
	if err != nil {
		t.Fatal(err)
	}
	registry := func(name string) transport.Source {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		return transport.Source{Transport: transport.Docker, Repository: reference.TagNameOnly(named)}
	}
	text := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",` +
		`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"` + digest.FromString("{}").String() +
		`","size":2},"layers":[]}`)
	for name, c := range map[string]struct {
		at               transport.Source
		rule             trust.Rule
		signed           bool   // the caller requires a signature
		refused, failure string // of Judge
		read             bool   // signatures are looked for
	}{
		"accepted": {at: registry("quay.io/a/b"),
			rule: trust.Rule{Scope: `transport docker, scope "quay.io"`, Accepts: true}},
		"accepted, and a signature required": {at: registry("quay.io/a/b"), signed: true,
			rule: trust.Rule{Scope: `transport docker, scope "quay.io"`, Accepts: true}, refused: "signature"},
		"rejected": {at: registry("ghcr.io/a"), rule: trust.Rule{Scope: "default", Rejects: true},
			refused: "is rejected by policy"},
		"not signed": {at: registry("quay.io/signed/b"), read: true, refused: "A signature was required",
			rule: trust.Rule{Scope: `transport docker, scope "quay.io/signed"`, Verifies: true, Attached: true}},
		"key that is not there": {at: registry("quay.io/lost/b"), failure: `keyPath "` + dir,
			rule: trust.Rule{Scope: `transport docker, scope "quay.io/lost"`, Verifies: true, Attached: true}},
		"keys that are not there": {at: registry("quay.io/lost/many"), failure: `keyPaths "` + dir,
			rule: trust.Rule{Scope: `transport docker, scope "quay.io/lost/many"`, Verifies: true, Attached: true}},
		"whole transport": {at: transport.Source{Transport: transport.Directory, Path: dir},
			rule: trust.Rule{Scope: "transport dir", Accepts: true}},
		"layout": {at: transport.Source{Transport: transport.OCI, Path: dir, Name: "v1"},
			rule: trust.Rule{Scope: "default", Rejects: true}, refused: "is rejected by policy"},
	} {
		t.Run(name, func(t *testing.T) {
			rule, err := p.Rule(c.at)
			rule.File = ""
			if err != nil || rule != c.rule {
				t.Errorf("%+v, %v", rule, err)
			}
			asked := false
			e := &trust.Evidence{Text: text, Digest: digest.FromBytes(text), Dir: t.TempDir(), Signed: c.signed}
			if c.at.Transport == transport.Docker {
				e.Signatures = func(context.Context, digest.Digest) ([][]byte, error) {
					asked = true
					return nil, nil
				}
			}
			refused, err := p.Judge(t.Context(), c.at, e)
			if (refused != nil) != (c.refused != "") || refused != nil && !strings.Contains(refused.Error(), c.refused) {
				t.Errorf("refused: %v", refused)
			}
			if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("failed: %v", err)
			}
			if e.Read != c.read || asked != c.read || e.Found != 0 {
				t.Errorf("signatures were read: %v, %v, %d", e.Read, asked, e.Found)
			}
			if left, err := os.ReadDir(e.Dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// Images in files and stores have the scopes of their paths and of the directories above them, and so have those that
// were carried from a place that is not here.
func TestScopes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "layout"), 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "x.tar")
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	accept := `[{"type":"insecureAcceptAnything"}]`
	p, err := written(t, fmt.Sprintf(`{"default":[{"type":"reject"}],"transports":{
		"oci":{%[1]q:%[3]s,"/elsewhere":%[3]s},"oci-archive":{%[2]q:%[3]s},"docker-archive":{"":%[3]s},
		"containers-storage":{"":%[3]s},"memory":{"place":%[3]s}}}`, dir, archive, accept))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []transport.Source{
		{Transport: transport.OCI, Path: filepath.Join(dir, "layout"), Name: "v1"},
		{Transport: transport.OCI, Path: "/elsewhere/layout", Name: "v1"},
		{Transport: transport.OCIArchive, Path: archive, Name: "v1"},
		{Transport: transport.OCIArchive, Path: archive, Name: "@1"},
		{Transport: transport.DockerArchive, Path: archive, Name: "a:v1"},
		{Transport: transport.Store, Path: "vfs@/g+/r", Name: "quay.io/a:v1"},
		{Transport: transport.Store, Name: "quay.io/a:v1"},
		{Transport: "memory", Path: "place", Name: "v1"},
	} {
		rule, err := p.Rule(at)
		if err != nil || !rule.Accepts {
			t.Errorf("%+v: %+v, %v", at, rule, err)
		}
		if refused, err := p.Judge(t.Context(), at, &trust.Evidence{}); refused != nil || err != nil {
			t.Errorf("%+v: refused: %v, %v", at, refused, err)
		}
	}
	other := transport.Source{Transport: "memory", Path: "other", Name: "v1"}
	if refused, err := p.Judge(t.Context(), other, &trust.Evidence{}); refused == nil || err != nil {
		t.Errorf("another place: refused: %v, %v", refused, err)
	}
}

// A failure to read signatures is no answer of the policy.
func TestSignaturesThatCannotBeRead(t *testing.T) {
	p, err := written(t, `{"default":[{"type":"sigstoreSigned","keyData":"`+
		base64.StdEncoding.EncodeToString(publicKey(t))+`"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the registry does not answer")
	e := &trust.Evidence{Text: []byte("{}"), Dir: t.TempDir(),
		Signatures: func(context.Context, digest.Digest) ([][]byte, error) { return nil, lost }}
	named, err := reference.ParseNormalizedNamed("quay.io/a/b:v1")
	if err != nil {
		t.Fatal(err)
	}
	refused, err := p.Judge(t.Context(), transport.Source{Transport: transport.Docker, Repository: named}, e)
	if refused != nil || !errors.Is(err, lost) {
		t.Errorf("%v, %v", refused, err)
	}
}
