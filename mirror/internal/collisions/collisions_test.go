package collisions

import (
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/mirror/imageset"
)

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestFind(t *testing.T) {
	m := imageset.Target{Host: "t", MaxNestedPaths: 1}
	pair := func(source string, content digest.Digest) Pair {
		r, err := imageset.ParseRef(source)
		if err != nil {
			t.Fatal(err)
		}
		to := m.Image(r)
		return Pair{Source: &r, Destination: &to, Content: content}
	}
	a, b := digest.Digest("sha256:"+hexA), digest.Digest("sha256:"+hexB)
	for name, c := range map[string]struct {
		pairs []Pair
		want  int
	}{
		"two registries": {[]Pair{pair("h/a:v1", ""), pair("g/a:v1", "")}, 1},
		"three registries": {[]Pair{pair("h/a:v1", ""), pair("g/a:v1", ""), pair("i/a:v1", "")},
			2},
		"the same content":               {[]Pair{pair("h/a:v1", a), pair("g/a:v1", a)}, 0},
		"joined paths":                   {[]Pair{pair("h/a/b:v1", a), pair("h/a-b:v1", b)}, 1},
		"the same name":                  {[]Pair{pair("h/a:v1", ""), pair("h/a:v1", "")}, 0},
		"a tag, with and without digest": {[]Pair{pair("h/a:v1", ""), pair("h/a:v1@sha256:"+hexA, "")}, 0},
		"a tag that has moved":           {[]Pair{pair("h/a:v1", b), pair("h/a:v1@sha256:"+hexA, "")}, 1},
		"by digest": {[]Pair{pair("h/a@sha256:"+hexA, ""), pair("g/a@sha256:"+hexA, ""),
			pair("g/a@sha256:"+hexB, "")}, 0},
	} {
		got := Find(c.pairs)
		if len(got) != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		for _, g := range got {
			if text := g.Error(); !strings.Contains(text, g.First.Name()) || !strings.Contains(text, "targetRepo") {
				t.Error(text)
			}
		}
	}
}
