package bundlecheck_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
)

// A bundle is validated; the report has every problem with its file and line.
func ExampleRun() {
	ctx, dir := context.Background(), os.DirFS("../../testdata/bundles/etcd/0.9.4")
	b, err := bundle.Read(ctx, dir, bundle.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	report, err := bundlecheck.Run(ctx, dir, b, bundlecheck.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("failed:", report.Failed())
	for _, p := range report.Problems {
		fmt.Println(p.Severity, p.Rule)
	}
	// Output:
	// failed: false
	// warning csv/csv-file-not-valid
}
