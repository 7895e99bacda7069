package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/redact"
)

// What a server that has a token says of it is in no message: neither parts nor pieces nor claims.
func TestToken(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	const sub, mail, run = "repo:acme/widgets:ref:refs/heads/main", "eve@x.io", "7f31c0de"
	header := encode([]byte(`{"alg":"RS256","kid":"b2f60a5e8c1d"}`))
	payload := encode([]byte(`{"aud":"sigstore","iss":"https://issuer.example.com","sub":"` + sub + `","email":"` + mail +
		`","nested":{"list":["` + run + `"]}}`))
	signature := encode([]byte("\xff\xfe\x01signature of \x02\x03 bytes, which are secret\xfb\xfa"))
	token := header + "." + payload + "." + signature
	r := redact.NewToken(token)
	for name, text := range map[string]string{
		"all": token, "header": header, "payload": payload, "signature": signature, "two parts": header + "." + payload,
		"a piece":  payload[20:40],
		"cut":      token[:len(token)/2] + "...",
		"standard": strings.NewReplacer("-", "+", "_", "/").Replace(signature),
		"twice":    base64.StdEncoding.EncodeToString([]byte(token)), "hex": hex.EncodeToString([]byte(token)),
		"upper": strings.ToUpper(payload), "subject": sub, "mail": mail, "a nested claim": run, "kid": "b2f60a5e8c1d",
		"a piece of a claim": sub[3:30],
	} {
		for _, around := range [][2]string{{"no: ", ""}, {`{"message":"`, `"}`}, {"a,", ",b"}} {
			got := r.Text(around[0] + text + around[1])
			if want := around[0] + "***" + around[1]; got != want && !(name == "cut" && got == around[0]+"***..."+around[1]) {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	const harmless = "There was an error processing the identity token: audience sigstore is expected of https://fulcio.example.org"
	if got := r.Text(harmless); got != harmless {
		t.Error(got)
	}
	for text, in := range map[string]bool{"https://a.example/" + payload: true, sub: false, harmless: false, "": false} {
		if r.In(text) != in {
			t.Errorf("%q: %v", text, !in)
		}
	}
	if got := (redact.Token{}).Text(token); got != token {
		t.Error(got)
	}
	if err := r.Error(errors.Join(errors.New(payload), io.EOF)); err.Error() != "***\nEOF" || !errors.Is(err, io.EOF) || r.Error(nil) != nil {
		t.Error(err)
	}
}
