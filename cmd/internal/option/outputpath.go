package option

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/migrate/jobs"
)

// CheckApart refuses an output that is the input or inside it: it would overwrite the input, or become a part of the
// catalog.
func CheckApart(in, out string) error {
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

// CheckDestinations applies [CheckApart] to the destinations of an image.
func CheckDestinations(in string, dests []transport.Destination) error {
	for _, d := range dests {
		if !d.InFiles() {
			continue
		}
		if err := CheckApart(in, d.Path); err != nil {
			return err
		}
	}
	return nil
}

// CheckResult refuses, before the work, a file of --report and similar flags that cannot be written, or that is or lies
// in one of the catalogs: it would overwrite the catalog or become a part of it.
func CheckResult(flag, path string, catalogs ...string) error {
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
		if err := CheckApart(catalog, path); catalog != "" && err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	return nil
}
