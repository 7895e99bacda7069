package registries

import (
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
)

// A repository of a real registry does what every place does.
func TestStore(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.TestWriter(t, func(t testing.TB) storetest.Place {
				s := start(t)
				const path = "acme/app"
				p := storetest.Place{LooseLists: name == "go-containerregistry", Writer: func(t testing.TB) store.Writer { return repository(t, s.host+"/"+path) }}
				if s.root != "" {
					p.Vanish = func(t testing.TB, d digest.Digest) { s.vanish(t, path, d) }
					p.Corrupt = func(t testing.TB, d digest.Digest) { s.corrupt(t, d) }
				}
				return p
			})
		})
	}
}

// repository opens a repository, as a program that has just begun.
func repository(t testing.TB, name string) store.Writer {
	t.Helper()
	remote, err := registries.New(t.Context(), registries.Options{Registry: registries.Config{PlainHTTP: true},
		Temp: t.TempDir(), Retries: 3, Backoff: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remote.Close(); err != nil {
			t.Error(err)
		}
	})
	to, err := remote.Repository(name)
	if err != nil {
		t.Fatal(err)
	}
	return to
}
