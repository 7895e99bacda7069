package sigstore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A job of GitHub's kind builds a catalog, signs it and an attestation with the token of the job, and sends it as a file to
// a place without a network, where it is verified by identity in another registry.
func TestJob(t *testing.T) {
	p := newPlace(t)
	inJob := options{env: openid.jobEnvironment()}
	image, copied := store.host()+"/job/catalog:v1", mirror.host()+"/copied/catalog:v1"
	predicate := filepath.Join(t.TempDir(), "predicate.json")
	if err := os.WriteFile(predicate, []byte(`{"tested": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	before, certificates := len(openid.secrets()), public.fulcio.count()
	p.with(inJob, "build", "catalog", catalog(t), "-t", image, "--push", "--server", "none", "--platform", "linux/amd64,linux/arm64",
		"--sbom", "cyclonedx", "--provenance", "--sign-keyless", "--signing-config", public.config)
	// One certificate is enough for all that is signed, and Fulcio alone gets the token: other servers are searched at the end.
	if n := public.fulcio.count() - certificates; n != 1 {
		t.Errorf("Fulcio was asked %d times", n)
	}
	token := openid.secrets()[before:]
	if len(token) != 2 || public.fulcio.saw(token[0]) != 1 || public.fulcio.saw(token[1]) != 1 {
		t.Errorf("Fulcio has not got the token of %d pieces once", len(token))
	}
	if public.fulcio.saw(jobSecret) != 0 {
		t.Error("Fulcio got what the job asks for tokens with")
	}
	p.with(inJob, "attest", image, "--type", "https://example.com/tested/v1", "--predicate", predicate,
		"--sign-keyless", "--signing-config", public.config)
	p.does("copy", image, "oci-archive:"+filepath.Join(p.dir, "catalog.tar")+":v1")
	asked := public.fulcio.count() + public.rekor.count() + authority.count()
	p.does("copy", "oci-archive:"+filepath.Join(p.dir, "catalog.tar")+":v1", copied)
	kinds := []string{"https://example.com/tested/v1", "slsaprovenance1", "cyclonedx"}
	for name, place := range map[string]string{"built": image, "archive": "oci-archive:" + filepath.Join(p.dir, "catalog.tar") + ":v1", "copied": copied} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.does(binderyVerify(place, public.root, byJob())...)
			for _, kind := range kinds {
				p.does(binderyVerify(place, public.root, byJob(), "--type", kind)...)
			}
			p.does(binderyVerify(place, public.root, []string{"--certificate-identity-regexp", "https://github.com/acme/.*",
				"--certificate-oidc-issuer-regexp", "http://127[.]0[.]0[.]1:[0-9]+/job"})...)
			p.refusesAll(place, byJob())
			if name == "archive" {
				return
			}
			p.cosignDoes(cosignVerify("verify", place, public.root, byJob())...)
			for _, kind := range kinds {
				p.cosignDoes(cosignVerify("verify-attestation", place, public.root, byJob(), "--type", kind)...)
			}
			p.cosignRefuses("expected", cosignVerify("verify", place, public.root, byPerson())...)
		})
	}
	if now := public.fulcio.count() + public.rekor.count() + authority.count(); now != asked {
		t.Errorf("to copy and verify, %d requests went to the servers that sign", now-asked)
	}

	// The identity is said.
	var answer any
	if err := json.Unmarshal([]byte(p.does(binderyVerify(copied, public.root, byJob(), "-o", "json")...).out), &answer); err != nil {
		t.Fatal(err)
	}
	said := texts(answer)
	for _, want := range []string{job, openid.jobs()} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("%s is not in %v", want, said)
		}
	}

	// Commands that read images ask for the identity too.
	trusted := func(issuer, identity string) []string {
		return []string{"copy", copied, "oci:" + filepath.Join(p.dir, "layout") + ":v1", "--trusted-identity", issuer + "=" + identity, "--trusted-root", public.root}
	}
	p.does(trusted(openid.jobs(), job)...)
	p.refuses("", trusted(openid.jobs(), "https://github.com/acme/other/.github/workflows/release.yml@refs/heads/main")...)
	p.refuses("", trusted(openid.URL, job)...)
	unsigned := p.newImage("job/unsigned")
	p.refuses("", "copy", unsigned, "oci:"+filepath.Join(p.dir, "unsigned")+":v1", "--trusted-identity", openid.jobs()+"="+job, "--trusted-root", public.root)
}

// refusesAll asks that the program refuses what is signed by somebody, if another one is asked for.
func (p *place) refusesAll(image string, who []string) {
	p.t.Helper()
	identity, issuer := who[1], who[3]
	for name, args := range map[string][]string{
		"another identity":       {"--certificate-identity", identity + "x", "--certificate-oidc-issuer", issuer},
		"a part of the identity": {"--certificate-identity", identity[:len(identity)-1], "--certificate-oidc-issuer", issuer},
		"another issuer":         {"--certificate-identity", identity, "--certificate-oidc-issuer", "https://token.actions.githubusercontent.com"},
		"an expression that matches a part": {"--certificate-identity-regexp", "^" + identity[:9] + "$",
			"--certificate-oidc-issuer", issuer},
		"an identity alone": {"--certificate-identity", identity},
		"an issuer alone":   {"--certificate-oidc-issuer", issuer},
	} {
		if r := p.bindery(options{}, binderyVerify(image, public.root, args)...); r.status != 1 {
			p.t.Errorf("%s: status %d\n%s%s", name, r.status, r.out, r.log)
		}
	}
}

// texts returns all texts in a value of JSON.
func texts(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, texts(e)...)
		}
	}
	return out
}
