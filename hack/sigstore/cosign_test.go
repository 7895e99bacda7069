package sigstore

import (
	"os"
	"path/filepath"
	"testing"
)

// byPerson and byJob are what a verifier asks for.
func byPerson() []string {
	return []string{"--certificate-identity", person, "--certificate-oidc-issuer", openid.URL}
}

func byJob() []string {
	return []string{"--certificate-identity", job, "--certificate-oidc-issuer", openid.jobs()}
}

// cosignVerify are the arguments to verify with cosign: Fulcio has no log of certificates here, and the time is proven by
// the timestamp authority.
func cosignVerify(command, image, root string, who []string, more ...string) []string {
	return append(append([]string{command, image, "--trusted-root", root, "--use-signed-timestamps", "--insecure-ignore-sct",
		"--allow-http-registry"}, who...), more...)
}

// cosignSign are the arguments to sign with cosign.
func cosignSign(command, image, token string, more ...string) []string {
	return append([]string{command, image, "--identity-token", token, "--signing-config", public.config, "--trusted-root", public.root,
		"--allow-http-registry", "--yes"}, more...)
}

// newImage builds a catalog, pushes it, and returns its name with the digest.
func (p *place) newImage(name string) string {
	p.t.Helper()
	image := store.host() + "/" + name
	digest := filepath.Join(p.dir, "digest")
	p.does("build", "catalog", catalog(p.t), "-t", image+":v1", "--push", "--server", "none", "--digest-file", digest, "--label", "name="+name)
	text, err := os.ReadFile(digest)
	if err != nil {
		p.t.Fatal(err)
	}
	return image + "@" + string(text)
}

func catalog(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The servers are what they should be: cosign signs and attests with them, and verifies what it has signed.
func TestServers(t *testing.T) {
	p := newPlace(t)
	image := p.newImage("servers/catalog")
	token := openid.person(person)
	p.cosignDoes(cosignSign("sign", image, token)...)
	predicate := filepath.Join(t.TempDir(), "predicate.json")
	if err := os.WriteFile(predicate, []byte(`{"tested": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cosignDoes(cosignSign("attest", image, token, "--predicate", predicate, "--type", "https://example.com/tested/v1")...)
	p.cosignDoes(cosignVerify("verify", image, public.root, byPerson())...)
	p.cosignDoes(cosignVerify("verify-attestation", image, public.root, byPerson(), "--type", "https://example.com/tested/v1")...)
	p.cosignRefuses("expected", cosignVerify("verify", image, public.root, byJob())...)
	p.cosignRefuses("no signatures", cosignVerify("verify", p.newImage("servers/unsigned"), public.root, byPerson())...)
}

// The issuer is what it should be: cosign gets tokens from it as it does from GitHub, and with a code that is typed.
func TestIssuer(t *testing.T) {
	for name, row := range map[string]struct {
		env  []string
		more []string
		who  []string
	}{
		"job":    {openid.jobEnvironment(), nil, byJob()},
		"device": {nil, []string{"--fulcio-auth-flow", "device"}, byPerson()},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			image := p.newImage("issuer/" + name)
			args := append([]string{"sign", image, "--signing-config", public.config, "--trusted-root", public.root, "--allow-http-registry", "--yes"}, row.more...)
			if r := p.cosign(options{env: row.env}, args...); r.status != 0 {
				t.Fatalf("cosign %v: %s%s", args, r.out, r.log)
			}
			p.cosignDoes(cosignVerify("verify", image, public.root, row.who)...)
		})
	}
}
