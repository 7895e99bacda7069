package redact

import "testing"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"docker://user:pass@host/x:v1":                    "docker://***@host/x:v1",
		"user:pass@host:5000/x:v1":                        "***@host:5000/x:v1",
		`image "user:p:a:s@host/x" of`:                    `image "***@host/x" of`,
		"host:5000/x:v1@sha256:abc":                       "host:5000/x:v1@sha256:abc",
		"x:v1@sha256:abc":                                 "x:v1@sha256:abc",
		"read host/x@sha256:abc/def":                      "read host/x@sha256:abc/def",
		"Authorization: Basic dXNlcjpwYXNz":               "Authorization: Basic ***",
		"https://host/token?password=geheim&x=y":          "https://host/token?password=***&x=y",
		"manifest: sha256:abc: no such file (a@b.c/d)":    "manifest: sha256:abc: no such file (a@b.c/d)",
		"oci:dir/with@sign:v1: no such file or directory": "oci:dir/with@sign:v1: no such file or directory",
	} {
		if got := Text(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
