package sigstore

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The search for secrets finds them: in what is printed, in files and in requests.
func TestSearch(t *testing.T) {
	p := &place{t: t, dir: t.TempDir(), seen: map[*recorder]int{}}
	for _, r := range withoutSecrets() {
		p.seen[r] = r.count()
	}
	expect := func(n int, what string) {
		t.Helper()
		if found := p.searchSecrets(); len(found) != n {
			t.Errorf("%s: found %v", what, found)
		}
	}
	token := openid.person(person)
	parts := strings.Split(token, ".")
	expect(0, "nothing")
	p.printed.WriteString("Bearer " + token)
	expect(2, "a token that is printed: its claims and its signature")
	p.printed.Reset()
	p.printed.WriteString(parts[0])
	expect(0, "the head of a token, which is the same in all")
	p.printed.Reset()

	file := filepath.Join(p.dir, "a", "b")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	pkcs8 := must(x509.MarshalPKCS8PrivateKey(key))
	for name, text := range map[string][]byte{
		"PKCS #8": pkcs8, "SEC 1": must(x509.MarshalECPrivateKey(key)), "Ed25519": must(x509.MarshalPKCS8PrivateKey(other)),
		"PEM in base64 alone": []byte(base64.StdEncoding.EncodeToString(pkcs8)), "hexadecimal": []byte(hex.EncodeToString(pkcs8)),
		"a head of PEM": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY"}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if found := p.searchSecrets(); len(found) == 0 || !strings.Contains(found[0], file) {
			t.Errorf("%s: found %v", name, found)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}

	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(token))
	z.Close()
	for name, q := range map[string]*http.Request{
		"header": must(http.NewRequest(http.MethodGet, public.rekor.URL, nil)),
		"body":   must(http.NewRequest(http.MethodPost, public.rekor.URL, strings.NewReader(jobSecret))),
		"packed": must(http.NewRequest(http.MethodPost, public.rekor.URL, &packed)),
	} {
		if name == "header" {
			q.Header.Set("Authorization", "Bearer "+jobSecret)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if found := p.searchSecrets(); len(found) == 0 || !strings.Contains(found[0], "rekor") {
			t.Errorf("%s: found %v", name, found)
		}
		p.seen[public.rekor] = public.rekor.count()
	}
	expect(0, "nothing again")
}
