package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/migrate/jobs"
)

// checkApart refuses an output that is the input or inside it: it would overwrite the input, or become a part of the
// catalog.
func checkApart(in, out string) error {
	from, err := jobs.Resolve(in)
	if err != nil {
		return nil // the input does not exist or is an image; reading it will report errors
	}
	to, err := jobs.Resolve(out)
	if err != nil {
		return nil
	}
	if to != from && !strings.HasPrefix(to,
		strings.TrimSuffix(from, string(filepath.Separator))+string(filepath.Separator)) {
		return nil
	}
	e := cmdline.Usagef("the output %q is the input %q or inside it", out, in)
	e.Object, e.Hint = out, "choose an output outside of the input"
	return e
}

// checkDestinations applies [checkApart] to the destinations of an image.
func checkDestinations(in string, dests []transport.Destination) error {
	for _, d := range dests {
		if !d.InFiles() {
			continue
		}
		if err := checkApart(in, d.Path); err != nil {
			return err
		}
	}
	return nil
}

// checkResult refuses, before the work, a file of --report and similar flags that cannot be written, or that is or lies
// in one of the catalogs: it would overwrite the catalog or become a part of it.
func checkResult(flag, path string, catalogs ...string) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return cmdline.Usagef("--%s %q: expected a file name", flag, path)
	}
	if err := atomicfs.CheckFile(path); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	for _, catalog := range catalogs {
		if err := checkApart(catalog, path); catalog != "" && err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return nil
}
