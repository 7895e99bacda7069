package imageset_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/imageset"
)

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func none(imageset.Operator) digest.Digest { return "" }

func ref(t *testing.T, text string) imageset.Ref {
	t.Helper()
	r, err := imageset.ParseRef(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRef(t *testing.T) {
	sum := "@sha256:" + hexA
	for text, want := range map[string]imageset.Ref{
		"h/a/b:v1":            {Transport: "docker", Host: "h", Path: "a/b", Tag: "v1"},
		"docker://h/a:v1":     {Transport: "docker", Host: "h", Path: "a", Tag: "v1"},
		"h:5000/a:v1":         {Transport: "docker", Host: "h:5000", Path: "a", Tag: "v1"},
		"h:5000/a" + sum:      {Transport: "docker", Host: "h:5000", Path: "a", Digest: "sha256:" + hexA},
		"h:5000/a:v1" + sum:   {Transport: "docker", Host: "h:5000", Path: "a", Tag: "v1", Digest: "sha256:" + hexA},
		"[::1]:5000/a:v1":     {Transport: "docker", Host: "[::1]:5000", Path: "a", Tag: "v1"},
		"busybox:v1":          {Transport: "docker", Path: "busybox", Tag: "v1"},
		"oci:///dir/c:at":     {Transport: "oci", Path: "/dir/c:at"},
		"oci://dir/Cat" + sum: {Transport: "oci", Path: "dir/Cat", Digest: "sha256:" + hexA},
	} {
		got, err := imageset.ParseRef(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		written, err := got.MarshalText()
		var again imageset.Ref
		if err := errors.Join(err, again.UnmarshalText(written)); err != nil || again != got {
			t.Errorf("%s is written as %s, and read as %+v, %v", text, written, again, err)
		}
		if s := got.String(); !strings.HasSuffix(s, strings.TrimPrefix(text, "docker://")) {
			t.Errorf("%s: got %s", text, s)
		}
	}
	for _, text := range []string{"", "h/a", "h/A:v1", "h/a b:v1", "h/a:v 1", "http://h/a:v1", "h/a@sha256:abc",
		"oci://",
		"h/a:", "/a:v1", "h//a:v1", "h/a/:v1", "user:pw@h/a:v1", "h/a@md5:x", "h/../a:v1", "h/a\x00:v1",
		"h/" + strings.Repeat("a", 300) + ":v1", strings.Repeat("a", 2000), "h/a:" + strings.Repeat("t", 129)} {
		if got, err := imageset.ParseRef(text); err == nil {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	if _, err := imageset.ParseRef("h/a"); err == nil || !strings.Contains(err.Error(), "tag and digest are empty") {
		t.Errorf("got %v", err)
	}
}

// The names of one registry are compared as one.
func TestHosts(t *testing.T) {
	for _, same := range [][2]string{{"h", "h:443"}, {"localhost:5000", "127.0.0.1:5000"}, {"[::1]:80", "localhost:80"},
		{"H.", "h"}} {
		a, b := imageset.Ref{Host: same[0], Path: "x", Tag: "v"}, imageset.Ref{Host: same[1], Path: "x", Tag: "v"}
		if !a.AtHost(same[1]) || a.PlainName() != b.PlainName() {
			t.Errorf("%q: %s, %s", same, a.PlainName(), b.PlainName())
		}
	}
	if (imageset.Ref{Host: "h"}).AtHost("h:5000") {
		t.Error("another port is another registry")
	}
}

func TestTarget(t *testing.T) {
	for text, want := range map[string]string{"docker://h:5000/m/": "h:5000/m", "h": "h", "docker://h/a/b": "h/a/b"} {
		if got, err := imageset.ParseTarget(text); err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "file://x", "docker://", "h/A", "h/a:v1", "h/a@sha256:" + hexA, "h /a"} {
		if got, err := imageset.ParseTarget(text); err == nil {
			t.Errorf("%q: got %s", text, got)
		}
	}
}

// The table of destinations.
func TestDestinations(t *testing.T) {
	m, medium := imageset.Target{Host: "t:5000", Path: "m"}, imageset.Target{}
	sum, rebuilt := "@sha256:"+hexA, digest.Digest("sha256:"+hexB)
	for _, c := range []struct {
		target     imageset.Target
		source, to string
	}{
		{m, "h/a/b:v1", "t:5000/m/a/b:v1"},
		{m, "h/a/b" + sum, "t:5000/m/a/b:sha256-" + hexA},
		{m, "h/a/b:v1" + sum, "t:5000/m/a/b:v1"},
		{medium, "h/a/b" + sum, "a/b:sha256-" + hexA},
		{imageset.Target{Host: "t", Path: "m", MaxNestedPaths: 2}, "h/a/b/c:v1", "t/m/a-b-c:v1"},
		{imageset.Target{Host: "t", Path: "m", MaxNestedPaths: 1}, "h/a/b:v1", "t/m-a-b:v1"},
		{imageset.Target{Host: "a", MaxNestedPaths: 1}, "h/a/b:v1", "a/a-b:v1"},
		{imageset.Target{Host: "a", MaxNestedPaths: 9}, "h/a/b:v1", "a/a/b:v1"},
	} {
		if got := c.target.Image(ref(t, c.source)).Name(); got != c.to {
			t.Errorf("%s: got %s, want %s", c.source, got, c.to)
		}
	}
	for _, c := range []struct{ source, repo, tag, to string }{
		{"h/a:v1", "", "", "t:5000/m/a:v1"}, {"h/a:v1", "moved/here", "zz", "t:5000/m/moved/here:zz"},
		{"h/a" + sum, "", "tagged", "t:5000/m/a:tagged"}, {"oci:///x/y", "", "", "t:5000/m/x/y:latest"},
		{"oci://x/Y", "r", "z", "t:5000/m/r:z"}, {"oci://../x", "", "", "t:5000/m/x:latest"}, {"oci://X", "", "", ""},
	} {
		got, err := m.Additional(imageset.AdditionalImage{Name: ref(t, c.source), TargetRepo: c.repo, TargetTag: c.tag})
		if name := got.Name(); err == nil && name != c.to || (err != nil) != (c.to == "") {
			t.Errorf("%s: got %s, %v", c.source, name, err)
		}
	}
	for _, c := range []struct {
		source, path, tag string
		filtered          bool
		rebuilt           digest.Digest
		to                string
	}{
		{"h/c/d:v1", "", "", true, rebuilt, "t:5000/m/c/d:v1"},
		{"h/c/d" + sum, "", "", true, rebuilt, "t:5000/m/c/d:sha256-" + hexB},
		{"h/c/d" + sum, "", "", true, "", "t:5000/m/c/d:sha256-hash"},
		{"h/c/d" + sum, "", "", false, "", "t:5000/m/c/d:sha256-" + hexA},
		{"h/c/d:v1" + sum, "", "", true, rebuilt, "t:5000/m/c/d:v1"},
		{"h/c/d:v1", "", "", false, "", "t:5000/m/c/d:v1"},
		{"h/c/d:v1", "x/y", "", true, rebuilt, "t:5000/m/x/y:v1"},
		{"h/c/d" + sum, "x/y", "t1", true, rebuilt, "t:5000/m/x/y:t1"},
		{"oci:///q/cat", "", "", true, rebuilt, "t:5000/m/cat:latest"},
		{"oci:///q/cat" + sum, "x", "v9", true, rebuilt, "t:5000/m/x:v9"},
	} {
		o := imageset.Operator{Catalog: ref(t, c.source), TargetCatalog: c.path, TargetTag: c.tag}
		if got := m.Catalog(o, c.filtered, c.rebuilt, "hash").Name(); got != c.to {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}

func TestBlocked(t *testing.T) {
	m := imageset.Target{Host: "t:5000", Path: "m"}
	for _, c := range []struct {
		rule, source  string
		blocked, byTo bool
	}{
		{"acme/common", "h/acme/common:v1", true, false}, {"tool:v2$", "h/x/tool:v2", true, false},
		{"^t:5000", "h/x:v1", false, false}, {"/m/", "h/x:v1", false, false},
		{"sha256-a", "h/x@sha256:" + hexA, true, true}, {"@sha256:b", "h/x:v1", true, false},
	} {
		s := imageset.Set{BlockedImages: []imageset.Blocked{{Name: c.rule, Pattern: regexp.MustCompile(c.rule)}}}
		r := ref(t, c.source)
		_, byTo, blocked := s.Blocked(r, "sha256:"+hexB, m.Image(r), m)
		if blocked != c.blocked || byTo != c.byTo {
			t.Errorf("%+v: got %t, %t", c, blocked, byTo)
		}
	}
}

func FuzzParseRef(f *testing.F) {
	f.Add("h:5000/a/b:v1@sha256:" + hexA)
	f.Add("oci:///a/b")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := imageset.ParseRef(text)
		if err != nil {
			return
		}
		if again, err := imageset.ParseRef(r.String()); err != nil || again != r {
			t.Fatalf("%q: %+v, then %+v, %v", text, r, again, err)
		}
		if r.Transport == imageset.Docker {
			to := imageset.Target{Host: "t", Path: "m", MaxNestedPaths: 2}.Image(r)
			if strings.Count(to.Path, "/") > 1 {
				t.Fatalf("%q: %s", text, to)
			}
		}
	})
}
