package sqlite_test

import (
	"context"
	"io"
	"iter"
	"os"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// BenchmarkRender reads a database and writes it as JSON. BINDERY_BENCH_DB names another database than "medium".
func BenchmarkRender(b *testing.B) {
	path := os.Getenv("BINDERY_BENCH_DB")
	if path == "" {
		path = recorded.Part(b).Database(b, "medium")
	}
	stat, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(stat.Size())
	b.ReportAllocs()
	for b.Loop() {
		db, err := sqlite.Open(context.Background(), path, sqlite.Options{Reuse: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := declcfg.FormatJSON.Write(io.Discard, db.Blobs(context.Background())); err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplace rewrites a database without changes.
func BenchmarkReplace(b *testing.B) {
	path := recorded.Part(b).Database(b, "medium")
	b.ReportAllocs()
	for b.Loop() {
		_, err := sqlite.Replace(b.Context(), path, sqlite.Options{Reuse: true, Stored: true, KeepGoing: true},
			sqlite.WriteOptions{Lossy: true},
			func(ctx context.Context, db *sqlite.DB) (iter.Seq2[declcfg.Blob, error], error) {
				return db.Blobs(ctx), nil
			})
		if err != nil {
			b.Fatal(err)
		}
	}
}
