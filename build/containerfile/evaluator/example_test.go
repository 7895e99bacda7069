//go:build !nobuildah

package evaluator_test

import (
	"context"
	"fmt"
	"log"
	"os"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/containerfile/evaluator"
)

// A Containerfile becomes layers and a configuration, without running anything.
func ExampleEvaluator_Evaluate() {
	file, err := evaluator.Parse("Containerfile",
		[]byte("FROM scratch\nCOPY mini /configs\nLABEL a=b\nUSER 1001\n"))
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	e, err := evaluator.New(file,
		evaluator.Options{Dir: dir, Context: "../../../testdata/fbc", Format: build.FormatOCI})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	stage, err := e.Evaluate(context.Background(), v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(stage.Layers), "layer, user", stage.Config.User, stage.Config.Labels)
	// Output:
	// 1 layer, user 1001 map[a:b]
}
