package charts_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/charts"
)

const index = `apiVersion: v1
entries:
  web:
  - {name: web, version: 1.0.0, urls: [web-1.0.0.tgz], digest: 5F636AD1C55F2F2E86B4356BF6EF1892BB52FDE6D674EC70C115A49E162580E3}
  - {name: web, version: 2.0.0-rc.1, urls: [web-2.0.0-rc.1.tgz]}
  - {name: web, version: v1.1.0, urls: [web-v1.1.0.tgz], dependencies: [{name: db}]}
  - {name: web, version: 1.0.5+b1, urls: [x.tgz]}
  db:
  - {name: db, version: 0.2.0, urls: [db.tgz]}
  helpers:
  - {name: helpers, version: 1.0.0, type: library, urls: [h.tgz]}
`

func rule(t testing.TB, text string) charts.Rule {
	t.Helper()
	r, err := charts.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The newest version that fits is taken, as by Helm.
func TestVersions(t *testing.T) {
	x, err := charts.ParseIndex([]byte(index))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"": "v1.1.0", "1.0.0": "1.0.0", "v1.0.0": "1.0.0", "1.1.0": "v1.1.0", "~1.0": "1.0.5+b1",
		"1.0": "1.0.5+b1", ">0-0": "2.0.0-rc.1", "2.0.0-rc.1": "2.0.0-rc.1", "<1.0.5": "1.0.0", "*": "v1.1.0", "^1 || ^2": "v1.1.0", "9.9.9": ""} {
		e, err := x.Find("web", rule(t, text))
		if e.Version != want || (want == "") != (err != nil) {
			t.Errorf("%q: %s, %v, want %s", text, e.Version, err, want)
		}
	}
	if e, _ := x.Find("web", rule(t, "1.0.0")); e.Digest != "sha256:5f636ad1c55f2f2e86b4356bf6ef1892bb52fde6d674ec70c115a49e162580e3" {
		t.Errorf("digest %s", e.Digest)
	}
	var all []string
	for _, e := range x.All() {
		all = append(all, e.Name+" "+e.Version)
	}
	if got := strings.Join(all, ", "); got != "db 0.2.0, web 2.0.0-rc.1, web v1.1.0, web 1.0.5+b1, web 1.0.0" {
		t.Errorf("all: %s", got)
	}
	_, err = x.Find("wep", rule(t, ""))
	if err == nil || fault.AdvisorOf(err).Hint() != `did you mean "web"?` {
		t.Errorf("%v", err)
	}
	_, err = x.Find("web", rule(t, "~7"))
	if err == nil || !strings.Contains(err.Error(), "there are 2.0.0-rc.1, v1.1.0") {
		t.Errorf("%v", err)
	}
	for _, text := range []string{"next", "1.2.3.4", ">", strings.Repeat("1", 300)} {
		if _, err := charts.ParseRule(text); err == nil {
			t.Errorf("rule %.20q: no error", text)
		}
	}
	if at := rule(t, "").Choose([]string{"0.9.0", "2.0.0-rc.1", "1.0.0"}); at != 2 {
		t.Errorf("chosen: %d", at)
	}
}

// What is odd is left out of an index, and what is no index is an error, within limits.
func TestHostileIndexes(t *testing.T) {
	x, err := charts.ParseIndex([]byte(`{"entries": {"../../etc": [{"name": "../../etc", "version": "1.0.0", "urls": ["a"]}], "a/b": [],
		"a": [null, {"name": "b", "version": "1.0.0", "urls": ["a"]}, {"name": "a", "version": "../1", "urls": ["a"]},
		{"name": "a", "version": "1.0.0", "urls": []}, {"name": "a", "version": "1.0.0-` + strings.Repeat("a", 300) + `", "urls": ["a"]},
		{"name": "a", "version": "1.0.0", "urls": ["ok"], "digest": "sha512:00"}], ".": [], "..": [], "-a": [], "": []}}`))
	if err != nil || len(x.All()) != 1 || len(x.Odd) != 11 {
		t.Errorf("%v, %+v", err, x)
	} else if x.All()[0].Digest != "" {
		t.Error("an odd digest counts")
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, text := range map[string]string{"empty": "", "html": "<html></html>", "no entries": "apiVersion: v1\n", "a list": "[]",
		"types": "entries: {a: [{name: {}}]}", "aliases": bomb + "entries: {}\n", "deep": "entries: " + strings.Repeat("[", 5000),
		"large": "entries: {}\n#" + strings.Repeat("x", charts.MaxIndex), "many": "entries:\n  a:\n" + strings.Repeat("  - {name: a}\n", 200_001),
		"not text": "\xff\xfe\x00"} {
		if _, err := charts.ParseIndex([]byte(text)); !errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(index))
	f.Add([]byte(`{"entries":{"a":[{"name":"a","version":"1","urls":["../x"]}]}}`))
	f.Add([]byte("entries: &a {a: *a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := charts.ParseIndex(text)
		if err != nil {
			return
		}
		for _, e := range x.All() {
			if name := charts.FileName(e.Name, e.Version); charts.CheckName(e.Name) != nil || strings.ContainsAny(name, "/\\") || name[0] == '.' {
				t.Errorf("file %q", name)
			}
		}
	})
}
