package serve_test

import (
	"bytes"
	"os"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/serve"
)

// Cache files that are damaged under a running server give right answers or errors, at any time; other packages are not
// affected, and the server stays up.
func TestDamageUnderRunningServer(t *testing.T) {
	good := newScene(t)
	overwrite := func(change func(b []byte) []byte) func(s *scene) {
		return func(s *scene) { s.write("a.cache", change(s.read("a.cache"))) }
	}
	for _, c := range []struct {
		name string
		do   func(s *scene)
		lost bool // answers are lost; otherwise the server has them in memory
	}{
		{"truncated to nothing", func(s *scene) { s.must(os.Truncate(s.path("a.cache"), 0)) }, true},
		{"truncated in the records", func(s *scene) { s.must(os.Truncate(s.path("a.cache"), 300)) }, true},
		{"truncated in the index",
			func(s *scene) { s.must(os.Truncate(s.path("a.cache"), int64(len(s.read("a.cache"))-5))) }, false},
		{"grown", func(s *scene) { s.must(os.Truncate(s.path("a.cache"), 1<<30)) }, false},
		{"truncated and grown again", func(s *scene) {
			size := int64(len(s.read("a.cache")))
			s.must(os.Truncate(s.path("a.cache"), 0))
			s.must(os.Truncate(s.path("a.cache"), size))
		}, true},
		{"zeros", overwrite(func(b []byte) []byte { return make([]byte, len(b)) }), true},
		{"some bits", overwrite(func(b []byte) []byte {
			for i := 104; i < len(b); i += 64 {
				b[i] ^= 0x20
			}
			return b
		}), true},
		{"shifted", overwrite(func(b []byte) []byte { return append([]byte{0}, b...) }), true},
		{"another package's", func(s *scene) { s.write("a.cache", s.read("b.cache")) }, true},
		{"another catalog's", func(s *scene) {
			s.write("a.cache", bytes.ReplaceAll(s.read("a.cache"), []byte("example.test"), []byte("example.evil")))
		}, true},
		{"removed", func(s *scene) { s.must(os.Remove(s.path("a.cache"))) }, false},
		{"replaced", func(s *scene) {
			s.must(os.WriteFile(s.path(".new"), []byte("x"), 0o644))
			s.must(os.Rename(s.path(".new"), s.path("a.cache")))
		}, false},
		{"the directory removed", func(s *scene) { s.must(os.RemoveAll(s.cache)) }, false},
		{"the catalog removed", func(s *scene) { s.must(os.RemoveAll(s.catalog)) }, false},
		{"not readable any more", func(s *scene) { s.must(os.Chmod(s.path("a.cache"), 0)) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := good.copy(t)
			server := serve.New(serve.Limits{}, nil)
			server.SetStore(load(t, directorySource(t, s.catalog),
				serve.LoadOptions{CacheDir: s.cache, EnforceIntegrity: true}))
			client := startServer(t, server)
			questions := s.m.summary()
			// lost counts the calls without an answer. Answers that are given, including the start of an aborted list,
			// must be right.
			lost := func() (n int) {
				for _, q := range questions {
					got, err := client.ask(t.Context(), q)
					want := s.m.ask(q.method, q.request, q.acknowledged).answers
					switch {
					case err != nil && status.Code(err) != codes.DataLoss || len(got) > len(want) ||
						err == nil && len(got) < len(want):
						t.Errorf("%s: %d answers of %d, %v", q, len(got), len(want), err)
						continue
					case err != nil:
						n++
					}
					for i := range got {
						if !same(got[i], want[i]) {
							t.Errorf("%s: answer %d%s", q, i, fieldDifference(normal(got[i]), normal(want[i])))
						}
					}
				}
				return n
			}
			if n := lost(); n > 0 {
				t.Fatalf("%d answers are lost before anything is damaged", n)
			}
			var wg sync.WaitGroup
			wg.Go(func() { lost() })
			c.do(s)
			wg.Wait()
			if n := lost(); (n > 0) != c.lost {
				t.Errorf("%d answers are lost", n)
			}
			for _, channel := range s.m.catalog.Channels {
				q := question{method: registryService + "GetBundleForChannel",
					request: &api.GetBundleInChannelRequest{PkgName: channel.Package, ChannelName: channel.Name}}
				if d := client.differs(t.Context(), s.m, q); d != "" && channel.Package != "a" {
					t.Errorf("another package: %s", d)
				}
			}
		})
	}
}
