package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Read a database of schema version 3, which no opm can migrate, and list the derived values.
func Example() {
	path, remove := unpacked("schema-3")
	defer remove()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	version, _ := db.SchemaVersion()
	fmt.Println("schema version", version)
	for b, err := range db.Blobs(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if p, ok := b.(*declcfg.Package); ok {
			fmt.Println("package", p.Name, "with default channel", p.DefaultChannel)
		}
	}
	for _, f := range db.Findings() {
		fmt.Println(f.Kind, f.Field)
	}
	// Output:
	// schema version 3
	// package etcd with default channel singlenamespace-alpha
	// package silicom-sts-operator with default channel alpha
	// derived dependencies
	// derived properties
	// derived skiprange
	// derived version
}

// unpacked decompresses one of the databases in testdata.
func unpacked(name string) (path string, remove func()) {
	data, err := os.ReadFile(filepath.Join("..", "testdata", "indexes", "db", name+".db.zst"))
	if err != nil {
		panic(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		panic(err)
	}
	defer dec.Close()
	if data, err = dec.DecodeAll(data, nil); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, "index.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		panic(err)
	}
	return path, func() { os.RemoveAll(dir) }
}
