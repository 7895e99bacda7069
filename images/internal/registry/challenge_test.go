package registry

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestRealms(t *testing.T) {
	some := credentials{user: "u", secret: "p"}
	for _, c := range []struct {
		base, realm string
		creds       credentials
		ok          bool
	}{
		{"https://registry-1.docker.io", "https://auth.docker.io/token", some, true},
		{"https://registry.example.com", "http://registry.example.com/token", credentials{}, false},
		{"https://registry.example.com", "https://10.0.0.1/token", some, false},
		{"https://registry.example.com", "https://[::1]/token", some, false},
		{"https://registry.example.com", "https://[::ffff:127.0.0.1]/token", some, false},
		{"https://registry.example.com", "https://[fe80::1%25eth0]/token", some, false},
		{"https://registry.example.com", "https://0.0.0.0/token", some, false},
		{"https://8.8.8.8", "https://10.0.0.1/token", some, false},
		{"https://registry.svc", "https://10.0.0.1/token", some, true},
		{"https://registry.svc", "https://169.254.169.254/token", some, false},
		{"https://10.0.0.2:5000", "https://10.0.0.1/token", some, true},
		{"https://169.254.1.1", "https://169.254.1.1/token", some, true},
		{"http://localhost:5000", "http://localhost:5000/token", some, true},
		{"http://localhost:5000", "http://localhost:5001/token", some, false},
		{"http://localhost:5000", "http://localhost:5001/token", credentials{}, true},
		{"http://registry.example.com", "http://registry.example.com:80/token", some, true},
		{"http://registry.example.com", "https://auth.example.com/token", some, true},
		{"https://registry.example.com", "ftp://registry.example.com/token", some, false},
	} {
		base, err1 := url.Parse(c.base)
		realm, err2 := url.Parse(c.realm)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if err := checkRealm(base, realm, c.creds); (err == nil) != c.ok {
			t.Errorf("%s, %s: %v", c.base, c.realm, err)
		}
	}
}

func TestChallenges(t *testing.T) {
	for text, want := range map[string]string{
		`Bearer realm="https://a/t",service="a b",scope="repository:x:pull,push"`: "[{bearer map[realm:https://a/t " +
			"scope:repository:x:pull,push service:a b]}]",
		`Basic realm="a \"b\""`:           `[{basic map[realm:a "b"]}]`,
		`Negotiate, Basic realm=x`:        "[{negotiate map[]} {basic map[realm:x]}]",
		`Basic realm="x", Bearer realm=y`: "[{basic map[realm:x]} {bearer map[realm:y]}]",
		``:                                "[]",
		`Bearer realm="unfinished`:        "[{bearer map[realm:]}]",
		`=,"`:                             "[]",
	} {
		if got := fmt.Sprint(parseChallenges([]string{text})); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := parseChallenges([]string{strings.Repeat("a,", 5000), strings.Repeat("a, ", 2000)}); len(
		got) > maxChallenges {
		t.Errorf("%d challenges", len(got))
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="https://a/t",service="a b", Basic realm=x`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseChallenges([]string{text}) {
			if c.scheme == "" || c.scheme != strings.ToLower(c.scheme) {
				t.Errorf("scheme %q", c.scheme)
			}
		}
	})
}
