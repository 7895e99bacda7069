// Command bench measures the bindery program and reference programs on large inputs. For each target of the project it
// prints the measured value, the reference, the ratio and whether the target is met.
//
//	hack/bench.sh [-runs N] [-json FILE] [-only WORD]
//	hack/bench.sh -only mirror [-runs N] [-peer PROGRAM]
//
// The second form counts the requests of a mirror too, and needs none of the other inputs.
//
// docs/explain/performance.md describes the measurements and how the references are obtained.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

type options struct {
	bindery, project, real string
	peer                   string
	json, only             string
	runs                   int
	benchtime              string
	strict                 bool
}

func main() {
	var o options
	flag.StringVar(&o.bindery, "bindery", "dist/bindery", "the program to measure")
	flag.StringVar(&o.project, "project", ".", "the project's root")
	flag.StringVar(&o.real, "real", "testdata/real",
		"directory of large.db.zst and catalog-*.tar.zst, v4.16 among them")
	flag.StringVar(&o.json, "json", "", "also write the figures to this file")
	flag.StringVar(&o.only, "only", "", "measure only what has this word in its name")
	flag.IntVar(&o.runs, "runs", 5, "runs of each command; the median is printed")
	flag.StringVar(&o.benchtime, "benchtime", "0.5s", "time of each Go benchmark; 0 leaves them out")
	flag.StringVar(&o.peer, "peer", os.Getenv("OC_MIRROR"), "the oc-mirror to compare mirrors with; none leaves it out")
	flag.BoolVar(&o.strict, "strict", false, "exit with status 1 when a promise is not kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	missed, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if missed > 0 && o.strict {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (missed int, err error) {
	for _, path := range []*string{&o.bindery, &o.project, &o.real} {
		if *path, err = filepath.Abs(*path); err != nil {
			return 0, err
		}
	}
	if _, err := os.Stat(o.bindery); err != nil {
		return 0, fmt.Errorf("the program to measure: %w (make build makes it)", err)
	}
	dir, err := os.MkdirTemp("", "bindery-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)

	if o.only == "mirror" {
		b := &bench{options: o, dir: dir, machine: describeMachine()}
		fmt.Println(b.machine)
		return 0, b.mirrors(ctx)
	}
	in, err := prepare(ctx, o, dir)
	if err != nil {
		return 0, fmt.Errorf("preparing the inputs: %w", err)
	}
	b := &bench{options: o, dir: dir, in: in, machine: describeMachine()}
	fmt.Println(b.machine)
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"reference", b.references}, {"migrate render validate large", b.database}, {"validate", b.catalogs},
		{"build", b.images}, {"bundles", b.bundles}, {"additions", b.additions}, {"warm", b.warm}, {"deltas", b.deltas},
		{"serving", b.serving}, {"memory", b.ceilings}, {"mirror", b.mirrors}} {
		if o.only != "" && step.name != "reference" && !strings.Contains(step.name, o.only) {
			continue
		}
		if err := step.do(ctx); err != nil {
			return 0, err
		}
	}
	b.print(os.Stdout)
	if o.benchtime != "0" && o.only == "" {
		if err := goBenchmarks(ctx, o); err != nil {
			return 0, err
		}
	}
	if o.json != "" {
		text, err := json.MarshalIndent(map[string]any{"machine": b.machine, "gzip": b.gzip, "rows": b.rows}, "", "  ")
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(o.json, append(text, '\n'), 0o644); err != nil {
			return 0, err
		}
	}
	for _, r := range b.rows {
		if len(r.Missed) > 0 {
			missed++
		}
	}
	return missed, nil
}
