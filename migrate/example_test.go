package migrate_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/migrate"
)

// Run migrates an index database to a catalog directory and verifies that nothing was lost.
func ExampleOptions_Run() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	report, err := migrate.Options{Verify: true}.Run(context.Background(), "../testdata/db/small.db", filepath.Join(dir, "catalog"))
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range report.Packages {
		fmt.Println(p.Name, p.Output.Bundles, "bundles in", p.Output.Channels, "channels")
	}
	fmt.Println("nothing was lost:", report.Verification.Same)
	// Output:
	// etcd 6 bundles in 3 channels
	// silicom-sts-operator 6 bundles in 2 channels
	// nothing was lost: true
}

// The output of a prepared migration is complete before it is renamed to its final name.
func ExampleOptions_Prepare() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	prepared, err := migrate.Options{}.Prepare(context.Background(), "../testdata/db/small.db", filepath.Join(dir, "catalog"))
	if err != nil {
		log.Fatal(err)
	}
	packages, err := os.ReadDir(prepared.Dir())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(packages), "packages are ready")
	if err := prepared.Commit(); err != nil {
		log.Fatal(err)
	}
	// Output: 2 packages are ready
}
