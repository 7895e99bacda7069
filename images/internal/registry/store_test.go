package registry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A repository does what every place does, whatever the registry can do.
func TestStore(t *testing.T) {
	for name, set := range map[string]func(r *testregistry.Registry, p *storetest.Place){
		"takes everything": func(*testregistry.Registry, *storetest.Place) {},
		"referrers API": func(r *testregistry.Registry, p *storetest.Place) {
			r.SetReferrers(testregistry.Referrers{API: true, Header: true, Page: 2})
			r.SetRules(testregistry.Rules{Ranges: true, Page: 2})
		},
		"conditions": func(r *testregistry.Registry, p *storetest.Place) {
			r.ConditionalPut()
			p.Conditions = true
		},
		"complete": func(r *testregistry.Registry, p *storetest.Place) {
			r.Separate(false)
			r.SetRules(testregistry.Rules{Children: true, NoHead: true, NoDigest: true})
			p.Vanish = func(_ testing.TB, d digest.Digest) { r.DeleteBlob(d) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.TestWriter(t, func(t testing.TB) storetest.Place {
				r := testregistry.New(t)
				p := storetest.Place{
					Writer:  func(t testing.TB) store.Writer { return writerTo(t, r, "acme/app") },
					Corrupt: func(_ testing.TB, d digest.Digest) { corruptAnswers(r, d) },
				}
				set(r, &p)
				return p
			})
		})
	}
}

// corruptAnswers makes a registry send other content of the same size for a digest.
func corruptAnswers(r *testregistry.Registry, d digest.Digest) {
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method != http.MethodGet || !strings.HasSuffix(q.URL.Path, "/"+d.String()) {
			return false
		}
		r.Interfere(nil)
		defer corruptAnswers(r, d)
		r.ServeHTTP(&flipping{ResponseWriter: w}, q)
		return true
	})
}

// flipping is an answer whose first byte is another.
type flipping struct {
	http.ResponseWriter
	begun bool
}

func (f *flipping) Write(p []byte) (int, error) {
	if !f.begun && len(p) > 0 {
		f.begun = true
		p = append([]byte{p[0] ^ 1}, p[1:]...)
	}
	return f.ResponseWriter.Write(p)
}
