package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"docker://user:pass@host/x:v1":                           "docker://***@host/x:v1",
		"user:pass@host:5000/x:v1":                               "***@host:5000/x:v1",
		`image "user:p:a:s@host/x" of`:                           `image "***@host/x" of`,
		"host:5000/x:v1@sha256:abcdef0123":                       "host:5000/x:v1@sha256:abcdef0123",
		"x:v1@sha256:abcdef0123":                                 "x:v1@sha256:abcdef0123",
		"read host/x@sha256:abc/def":                             "read host/x@sha256:abc/def",
		"Authorization: Basic dXNlcjpwYXNz":                      "Authorization: Basic ***",
		"https://host/token?password=geheim&x=y":                 "https://host/token?password=***&x=y",
		"manifest: sha256:abc: no such file (a@b.c/d)":           "manifest: sha256:abc: no such file (a@b.c/d)",
		"oci:dir/with@sign:v1: no such file or directory":        "oci:dir/with@sign:v1: no such file or directory",
		"docker://busybox@sha256:abcdef0123":                     "docker://busybox@sha256:abcdef0123",
		"host:5000/x@notadigest":                                 "host:5000/x@notadigest",
		"basic operations need a bearer authentication":          "basic operations need a bearer authentication",
		"Secret: missing, and the token: expired":                "Secret: missing, and the token: expired",
		"open eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln: no such": "open ***: no such",
		`{"value":"eyJhbGciOiJub25lIn0.eyJzdWIi"}`:               `{"value":"***"}`,
		"eyJhbGciOiJub25lIn0 and eyJ.x":                          "eyJhbGciOiJub25lIn0 and eyJ.x",
		"the capability is Basic Install":                        "the capability is Basic Install",
		"https://a@host/x":                                       "https://***@host/x",
		`realm "http://host/token": refused to go`:               `realm "http://host/token": refused to go`,
		"open password: no such file or directory":               "open password: no such file or directory",
		"--predicate passphrase: predicate: invalid":             "--predicate passphrase: predicate: invalid",
		"v1: ^.spec.accessToken: type: type changed":             "v1: ^.spec.accessToken: type: type changed",
		"v1: ^.spec.password: minLength: minimum raised":         "v1: ^.spec.password: minLength: minimum raised",
		"pattern added : \"\" -> \"^(https?|ftp)://[-a-zA-Z0-9+&@#/%?=~_|!:,.;]*[-a-z]$\"": "pattern added : \"\" -> " +
			"\"^(https?|ftp)://[-a-zA-Z0-9+&@#/%?=~_|!:,.;]*[-a-z]$\"",
		"two lines\nsource=user:pass@host/x": "two lines\nsource=***@host/x",
	} {
		if got := Text(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// A secret is found in whatever form text from outside has it.
func TestTextHidesSecrets(t *testing.T) {
	const s = "S3CRETpw"
	for _, text := range []string{
		"user:S3CRETpw@host/img", "(user:S3CRETpw@host/img)", "a=user:S3CRETpw@host/img", "docker://user:S3CRETpw@host/img:v1",
		"user:S3CRETpw@host/img@sha256:0123456789abcdef", "user:S3CRETpw@host/img:v1@sha256:0123456789abcdef",
		"user:S3CRETpw@host", "user%3AS3CRETpw%40host%2Fimg", "https%3A%2F%2Fuser%3AS3CRETpw%40host", "user:a/S3CRETpw@host/img",
		"user:a@S3CRETpw@host/img", "https://S3CRETpw@host/x", "[user:S3CRETpw@host/img]", `\"user:S3CRETpw@host/img\"`,
		"password: S3CRETpw", "Password = S3CRETpw", "passwd=S3CRETpw", "passphrase: S3CRETpw", "pwd:S3CRETpw",
		`{"password":"S3CRETpw"}`, `{\"password\":\"S3CRETpw\"}`, `"password": "two S3CRETpw"`, `"password":"a\"S3CRETpw"`,
		"db_password: S3CRETpw", "password='S3CRETpw'", "password%3DS3CRETpw", "token=S3CRETpw", "token: S3CRETpw",
		`"token":"S3CRETpw"`, `"access_token" : "S3CRETpw"`, "secret=S3CRETpw", "client_secret: S3CRETpw", `"api_key":"S3CRETpw"`,
		"apikey=S3CRETpw", "X-Api-Key: S3CRETpw", "Authorization: Bearer S3CRETpw", "Authorization: S3CRETpw",
		"Proxy-Authorization: Basic S3CRETpw", "Bearer S3CRETpw", "basic S3CRETpw==", `"Authorization":"Basic S3CRETpw"`,
		"https://host/b?X-Amz-Signature=S3CRETpw&x=y", "https://host/b?X-Amz-Credential=S3CRETpw%2Fx&x=y",
		"https://host/b?X-Amz-Security-Token=S3CRETpw", "https://host/b?a=b&sig=S3CRETpw", "?x=y&Signature=S3CRETpw",
		"https://host/b%3Fx%3Dy%26sig%3DS3CRETpw", "https://host/?key=S3CRETpw", "Cookie: session=S3CRETpw",
		"identitytoken=S3CRETpw", "AWSAccessKeyId=S3CRETpw", "x\ny password: S3CRETpw",
	} {
		if got := Text(text); strings.Contains(got, s) {
			t.Errorf("%s: %s", text, got)
		}
		in, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		out := JSON(in)
		var is map[string]string
		if err := json.Unmarshal(out, &is); err != nil || strings.Contains(string(out), s) || is["text"] != Text(text) {
			t.Errorf("%s: %s %v", in, out, err)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add(`user:pw@host/x`)
	f.Add(`"password":"a\"b"`)
	f.Fuzz(func(t *testing.T, text string) {
		in, err := json.Marshal([]string{text, "x"})
		if err != nil {
			t.Skip()
		}
		var is, was []string
		if err := json.Unmarshal(JSON(in), &is); err != nil {
			t.Fatalf("%s: %s", in, JSON(in))
		}
		if err := json.Unmarshal(in, &was); err != nil || is[1] != "x" || is[0] != Text(was[0]) {
			t.Errorf("%q: %q", was, is)
		}
	})
}

// Nearly all text has nothing to remove.
func BenchmarkText(b *testing.B) {
	text := strings.Repeat("registry.example.com/acme/alpha-operator:v1.2.3@sha256:"+strings.Repeat("0123456789abcdef", 4)+
		"\tstable-4.16\talpha-operator.v1.2.3\n", 1)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Text(text)
	}
}
