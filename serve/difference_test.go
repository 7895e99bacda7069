package serve_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/sqlite"
)

// runs tries random catalogs: a few constant ones or, for the duration in BINDERY_DIFFERENCE_SECONDS, always new ones.
func runs(t *testing.T, few uint64, try func(t *testing.T, seed uint64)) {
	t.Helper()
	seconds, err := strconv.Atoi(os.Getenv("BINDERY_DIFFERENCE_SECONDS"))
	first, end := uint64(1), time.Time{}
	if err == nil {
		first = uint64(time.Now().UnixNano())
		end = time.Now().Add(time.Duration(seconds) * time.Second)
	}
	seed := first
	for ; seed < first+few || time.Now().Before(end); seed++ {
		if t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { try(t, seed) }); t.Failed() {
			return
		}
	}
	t.Logf("%d catalogs", seed-first)
}

func load(t testing.TB, src serve.Source, o serve.LoadOptions) serve.Store {
	t.Helper()
	store, err := serve.Load(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func directorySource(t testing.TB, dir string) serve.Source {
	t.Helper()
	src, err := serve.Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// answersAs requires that a server answers all questions about a catalog, and some random ones, like the model.
func (c client) answersAs(t *testing.T, m model, r random, questions int) {
	t.Helper()
	for _, q := range m.questions() {
		if d := c.differs(t.Context(), m, q); d != "" {
			t.Fatal(d)
		}
	}
	for range questions {
		if d := c.differs(t.Context(), m, r.question(m)); d != "" {
			t.Fatal(d)
		}
	}
}

// While two catalogs alternate, many concurrent clients get right answers of one of them, also with little memory for
// answers.
func TestAnswersWhileCatalogsTakeTurns(t *testing.T) {
	models := make([]model, 2)
	dirs := make([]string, 2)
	for i := range models {
		r := newRandom(uint64(i + 3))
		models[i], dirs[i] = model{&declcfg.Catalog{}}, t.TempDir()
		for _, name := range []string{"a", "b", "d"} {
			r.pkg(models[i].catalog, name)
			r.custom(models[i].catalog, name)
		}
		r.writeAs(t, dirs[i], models[i].catalog, filePerPackage, ".json")
	}
	server := serve.New(serve.Limits{AnswerMemory: 64 << 10}, nil)
	server.SetStore(load(t, directorySource(t, dirs[0]), serve.LoadOptions{}))
	first := startServer(t, server)
	done := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 6 {
		c, r := dial(t, first.conn.Target()), newRandom(uint64(i))
		clients.Go(func() {
			for range 150 {
				q := r.question(models[r.IntN(2)])
				got, err := c.ask(t.Context(), q)
				if d := models[0].differs(q, got, err); d != "" {
					if other := models[1].differs(q, got, err); other != "" {
						t.Errorf("neither: %s\nnor: %s", d, other)
					}
				}
			}
		})
	}
	go func() {
		clients.Wait()
		close(done)
	}()
	for n := 1; ; n++ {
		select {
		case <-done:
			t.Logf("%d turns", n)
			return
		default:
			server.SetStore(load(t, directorySource(t, dirs[n%2]), serve.LoadOptions{}))
		}
	}
}

// The server and the model give the same answers: from memory, from cache files on disk, from a changed catalog with an
// old cache, and after a reload.
func TestAnswersAreThoseOfTheModel(t *testing.T) {
	runs(t, 3, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		c := r.catalog()
		dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
		r.write(t, dir, c)
		m := model{c}
		server := serve.New(serve.Limits{}, nil)
		server.SetStore(load(t, directorySource(t, dir), serve.LoadOptions{}))
		client := startServer(t, server)
		client.answersAs(t, m, r, 40)

		load(t, directorySource(t, dir), serve.LoadOptions{CacheDir: cache, MustWrite: true}).Close()
		server.SetStore(load(t, directorySource(t, dir),
			serve.LoadOptions{CacheDir: cache, EnforceIntegrity: true, Log: failingLog(t)}))
		client.answersAs(t, m, r, 40)

		// Replace the catalog by one that is partly the same.
		next := r.changed(c)
		dir = t.TempDir()
		r.write(t, dir, next)
		server.SetStore(load(t, directorySource(t, dir), serve.LoadOptions{CacheDir: cache}))
		client.answersAs(t, model{next}, r, 40)
	})
}

// failingLog fails the test on any log record: a matching cache gives no reason for one.
func failingLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		t.Errorf("log: %s", b)
		return len(b), nil
	}), nil))
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(b []byte) (int, error) { return w(b) }

// changed returns the catalog without one of its packages, with another one and other custom blobs.
func (r random) changed(c *declcfg.Catalog) *declcfg.Catalog {
	parts := c.ByPackage()
	next := &declcfg.Catalog{}
	drop := c.Packages[r.IntN(len(c.Packages))].Name
	for name, part := range parts {
		if name != drop {
			next.Append(part)
		}
	}
	r.pkg(next, "new")
	r.custom(next, r.one("new", "", drop))
	return next
}

// The answers from a database equal the model's. The model uses the blobs read from the database, as databases cannot
// represent everything.
func TestAnswersFromDatabaseAreThoseOfTheModel(t *testing.T) {
	runs(t, 2, func(t *testing.T, seed uint64) {
		r := newRandom(seed)
		r.distinct = true
		c := r.catalog()
		path := filepath.Join(t.TempDir(), "index.db")
		if _, err := sqlite.Create(t.Context(), path, c.Blobs(), sqlite.WriteOptions{Lossy: true}); err != nil {
			t.Fatal(err)
		}
		held := databaseCatalog(t, path)
		if len(held.Bundles) == 0 || len(held.Packages) != len(c.Packages) {
			t.Fatalf("%d packages and %d bundles are in the database", len(held.Packages), len(held.Bundles))
		}
		server := serve.New(serve.Limits{}, nil)
		server.SetStore(load(t, serve.Database(context.Background(), path, sqlite.Options{}), serve.LoadOptions{}))
		startServer(t, server).answersAs(t, model{held}, r, 40)
	})
}

func databaseCatalog(t *testing.T, path string) *declcfg.Catalog {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &declcfg.Catalog{}
	for b, err := range db.Blobs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		c.Add(b)
	}
	return c
}
