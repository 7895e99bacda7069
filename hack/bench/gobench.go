package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// goBenchmarks runs the Go benchmarks of the hot paths and prints their results.
func goBenchmarks(ctx context.Context, o options) error {
	args := []string{"test", "-run", "^$", "-bench", ".", "-benchmem", "-short", "-benchtime", o.benchtime,
		"./declcfg", "./internal/canon", "./layers", "./sqlite", "./serve"}
	fmt.Printf("\ngo %s\n", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.project, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the Go benchmarks: %w", err)
	}
	return nil
}
