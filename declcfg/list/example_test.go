package list_test

import (
	"context"
	"log"
	"os"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/list"
)

// A table of the packages of a catalog.
func ExampleLoad() {
	blobs := declcfg.Stream(context.Background(), os.DirFS("../../testdata/fbc/mini"), declcfg.LoadOptions{}, nil)
	listing, err := list.Load(blobs)
	if err != nil {
		log.Fatal(err)
	}
	table := list.PackageTable(listing.Packages())
	if err := table.Write(os.Stdout, func(cell string) string { return cell }); err != nil {
		log.Fatal(err)
	}
	// Output:
	// NAME                         DISPLAY NAME                          DEFAULT CHANNEL
	// ecr-secret-operator          ECR Secret Operator                   v0.4
	// kairos-operator              Kairos Operator                       candidate-v2
	// shipwright-operator          Shipwright Operator                   alpha
	// trident-operator             NetApp Trident                        stable
	// visionone-containersecurity  Trend Vision One™ Container Security  stable
}
