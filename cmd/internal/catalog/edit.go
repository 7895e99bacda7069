package catalog

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// Each command that edits a catalog builds a [change.Edit] from its flags and arguments (addEdit, removeEdit and so on)
// and applies it to the catalog. The command groups registry, index and catalog share the edits and differ in the names
// of flags.

// EditFlags are those of every command that edits a catalog.
func EditFlags() []cli.Flag {
	const group = "account"
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "print the changes, one per line, without writing them", Category: group},
		&cli.BoolFlag{Name: "explain", Usage: "print the reason for each head, default channel and edge",
			Category: group},
		&cli.StringFlag{Name: "account",
			Usage:    "write a JSON account of the changes to `FILE`; \"-\" is standard output, in place of the lines",
			Category: group},
		&cli.BoolFlag{Name: "lossy", Usage: "drop what a database cannot store instead of failing"},
		&cli.BoolFlag{Name: "keep-going",
			Usage: "skip invalid packages of a database instead of failing; exit status 4"},
		&cli.DurationFlag{Name: "wait", Value: 10 * time.Second,
			Usage: "wait up to `DURATION` for a concurrent edit of the same catalog", Category: "execution"},
		program.InCategory(program.JobsFlag(), "work"),
	}
}

// PermissiveFlag is the flag of the edits that can apply the valid part of a batch.
func PermissiveFlag() cli.Flag {
	return &cli.BoolFlag{Name: "permissive", Usage: "continue on errors and log them as warnings"}
}

// createFlags are those of the edits that can create a catalog.
func createFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "create",
		Usage: "create the catalog if it does not exist: a database if its name ends in .db, else a directory"},
		newFilesFlag()}
}

// newFilesFlag is the file format of a new directory.
func newFilesFlag() cli.Flag {
	return &cli.StringFlag{Name: "catalog-format", Value: "json", Usage: "file `FORMAT` of a new directory (json|yaml)"}
}

// changeOptions reads [EditFlags] and [createFlags]. path is the path of a new catalog.
func changeOptions(p *option.Session, c *cli.Context, path string) (change.Options, error) {
	o := change.Options{
		Jobs: c.Int("jobs"), DryRun: c.Bool("dry-run"), Lossy: c.Bool("lossy"), KeepGoing: c.Bool("keep-going"),
		Wait: c.Duration("wait"), AnyImages: p.Opm,
		Create: begins(p, c), New: change.Directory, Warn: p.WarnAt,
	}
	if o.Wait <= 0 {
		o.Wait = time.Nanosecond // 0 would be the default
	}
	if strings.HasSuffix(path, ".db") || !c.Bool("create") && !os.IsPathSeparator(lastByte(path)) {
		o.New = change.Database
	}
	text := c.String("catalog-format")
	if text == "" {
		return o, nil
	}
	var err error
	if o.Format, err = declcfg.ParseFormat(text); err != nil || o.Format == declcfg.FormatNDJSON {
		return o, cmdline.Usagef("invalid --catalog-format value %q, expected (json|yaml)", text)
	}
	return o, nil
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// CheckCatalog refuses, before anything is fetched, a reference to a catalog that cannot be edited.
func CheckCatalog(p *option.Session, c *cli.Context, ref string) error {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return err
	case kind == render.BundleDirectory:
		return option.NotCatalogDirectory(ref)
	case kind == render.ManifestsDirectory:
		return option.NotEdited(ref)
	case kind == render.Image && !begins(p, c):
		hint := "the catalog is a directory or an index database"
		if p.HasFlag("create") {
			hint += "; --create creates a new one"
		}
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: ref, Hint: hint,
			Err: &fs.PathError{Op: "open", Path: ref, Err: syscall.ENOENT}}
	}
	return nil
}

// begins reports whether the command creates a missing catalog: with --create, or as opm, which creates a database when
// it adds to it.
func begins(p *option.Session, c *cli.Context) bool {
	return c.Bool("create") || strings.HasSuffix(p.Line.Name(""), " registry add")
}

// EditInPlace edits a directory or a database file and reports the result.
func EditInPlace(p *option.Session, c *cli.Context, path string, e change.Edit) error {
	if err := CheckAccount(p, c, path); err != nil {
		return err
	}
	o, err := changeOptions(p, c, path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		e.Always = true // a catalog without bundles is one as well
	}
	r, err := change.InPlace(c.Context, path, e, o)
	if err != nil {
		return editError(p, err)
	}
	if err := reportEdit(p, c, path, r); err != nil {
		return err
	}
	return LeftOut(r)
}

// LeftOut is the exit status of an edit that skipped invalid packages.
func LeftOut(r *change.Result) error {
	for _, f := range findingsOf(r) {
		if f.Kind == sqlite.Quarantined {
			return &cmdline.ExitStatus{Status: 4}
		}
	}
	return nil
}

// editError is the error of an edit as it is printed; started as opm, with opm's text.
func editError(p *option.Session, err error) error {
	var wrong *edit.Error
	if !p.Opm || !errors.As(err, &wrong) {
		return p.OpmMessage(err)
	}
	opmErr := &OpmEditError{err: err, text: wrong.OpmMessage()}
	if slices.Contains([]string{"opm registry rm", "opm index rm"}, p.Line.Name("opm")) {
		opmErr.text, opmErr.Field = "error deleting packages from database: "+opmErr.text, true
	}
	var status *cmdline.ExitStatus
	if errors.As(err, &status) {
		return &cmdline.ExitStatus{Status: status.Status, Err: opmErr}
	}
	return opmErr
}

// OpmEditError is the error of an edit with opm's text.
type OpmEditError struct {
	err  error
	text string
	// field is set if opm logs the text in a field of its final message.
	Field bool
}

func (e *OpmEditError) Error() string { return e.text }

func (e *OpmEditError) Unwrap() error { return e.err }

// addStatus gives the error of an add the exit status of opm.
func addStatus(err error) error {
	var wrong *edit.Error
	if errors.As(err, &wrong) && wrong.ExitStatus() != 1 {
		return &cmdline.ExitStatus{Status: wrong.ExitStatus(), Err: err}
	}
	return err
}
