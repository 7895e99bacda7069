package hint

import (
	"errors"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/sqlite"
)

// editHint returns the hint for an error of an edit; empty for other errors. It names the command's own flags.
func editHint(p *program.Program, err error) string {
	var wrong *edit.Error
	if errors.Is(err, sqlite.ErrLoss) && p.HasFlag("lossy") {
		return "--lossy drops it; a directory or an image of a file-based catalog can store it"
	}
	var broken *change.BrokenError
	if errors.As(err, &broken) && !broken.Changed && p.HasFlag("keep-going") {
		if strings.Contains(broken.Reason, "invalid image pull spec") {
			return "--keep-going skips invalid packages; \"migrate --repair\" writes a catalog directory without " +
				"images that are no pull specs"
		}
		return "--keep-going skips invalid packages; \"registry rm\" and \"catalog rm\" remove them"
	}
	if !errors.As(err, &wrong) {
		return ""
	}
	var hints []string
	hint := func(kind error, flag, text string) {
		if errors.Is(err, kind) && (flag == "" || p.HasFlag(flag)) {
			hints = append(hints, text)
		}
	}
	if !errors.Is(err, edit.ErrImageExists) {
		hint(edit.ErrVersionExists, "overwrite-latest",
			"--overwrite-latest replaces the bundle of the same name if it is a channel head")
	}
	hint(edit.ErrAlpha, "enable-alpha", "--enable-alpha allows bundles to substitute for others")
	hint(edit.ErrDefaultChannel, "allow-package-removal",
		"--allow-package-removal removes the package if all its channel heads are given")
	hint(edit.ErrDefaultChannel, "default-channel", "set another one with --default-channel NAME=CHANNEL")
	if strings.Contains(err.Error(), "bundle image must be set") && p.HasFlag("image-ref-template") {
		hints = append(hints, "set --image-ref-template for bundles that come from no registry")
	}
	hint(edit.ErrConflict, "replace", "--replace takes packages that several catalogs contain from the last one")
	for _, one := range wrong.Problems {
		if own := fault.AdvisorOf(one.Kind); own != nil && !slices.Contains(hints, own.Hint()) {
			hints = append(hints, own.Hint())
		}
	}
	if text := wrong.Hint(); text != "" {
		hints = append(hints, text)
	} else if len(wrong.Problems) > 1 {
		hint(edit.ErrNotFound, "permissive", "--permissive continues on errors")
	}
	return strings.Join(hints, "; ")
}

// NearError adds a hint with the most similar known name to an error about a missing name.
func NearError(kind string, known []string, err error) error {
	var wrong *edit.Error
	if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !errors.Is(err, edit.ErrNotFound) {
		return err
	}
	name := wrong.Problems[0].Bundle
	if kind == "package" {
		name = wrong.Problems[0].Package
	}
	if name == "" || slices.Contains(known, name) {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: name,
		Hint: (&declcfg.NotFoundError{Kind: kind, Name: name, Known: known}).Hint(), Err: err}
}

// NearPackage wraps the function of an edit and adds such a hint to its error.
func NearPackage(of *declcfg.Catalog) func(*declcfg.Catalog, *edit.Account,
	error) (*declcfg.Catalog, *edit.Account, error) {
	return func(c *declcfg.Catalog, a *edit.Account, err error) (*declcfg.Catalog, *edit.Account, error) {
		if err == nil {
			return c, a, nil
		}
		var known []string
		for i := range of.Packages {
			known = append(known, of.Packages[i].Name)
		}
		return nil, nil, NearError("package", known, err)
	}
}
