package catalog

import (
	"context"
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
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// Each command that edits a catalog builds a [change.Edit] from its flags and arguments and applies it to the catalog. The command groups registry, index and catalog share the edits and differ in the names
// of flags.

// EditOptions are the flags of the commands that edit catalogs and indexes. Each command has those that it needs.
type EditOptions struct {
	option.Image
	option.Edited
	option.Catalogs
	explain, create bool
	account         string
	files           string // --catalog-format
	wait            time.Duration
	permissive      bool

	mode, imageTemplate                                         string
	overwriteLatest, enableAlpha, keepManifests, resolveDigests bool
	allowPackageRemoval                                         bool
	referenced                                                  bool // each added bundle must have an image

	undo []string // the commands that undo "catalog demote"
}

// Flags are those of every command that edits a catalog.
func (o *EditOptions) Flags() []cli.Flag {
	const group = "account"
	return []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "print the changes, one per line, without writing them", Category: group,
			Destination: &o.DryRun},
		&cli.BoolFlag{Name: "explain", Usage: "print the reason for each head, default channel and changed edge",
			Category: group, Destination: &o.explain},
		&cli.StringFlag{Name: "account", Destination: &o.account,
			Usage:    "write a JSON account of the changes to `FILE`; \"-\" is standard output, in place of the lines",
			Category: group},
		&cli.BoolFlag{Name: "lossy", Usage: "drop what a database cannot store instead of failing", Destination: &o.Lossy},
		&cli.BoolFlag{Name: "keep-going", Destination: &o.KeepGoing,
			Usage: "skip invalid packages of a database instead of failing; exit status 4"},
		&cli.DurationFlag{Name: "wait", Value: 10 * time.Second, Destination: &o.wait,
			Usage: "wait up to `DURATION` for a concurrent edit of the same catalog", Category: "execution"},
		option.JobsFlag(&o.Jobs, "work"),
	}
}

// PermissiveFlag is the flag of the edits that can apply the valid part of a batch.
func (o *EditOptions) PermissiveFlag() cli.Flag {
	return &cli.BoolFlag{Name: "permissive", Usage: "continue on errors and log them as warnings", Destination: &o.permissive}
}

// createFlags are those of the edits that can create a catalog.
func (o *EditOptions) createFlags() []cli.Flag {
	return []cli.Flag{&cli.BoolFlag{Name: "create", Destination: &o.create,
		Usage: "create the catalog if it does not exist: a database if its name ends in .db, else a directory"},
		o.newFilesFlag()}
}

// newFilesFlag is the file format of a new directory.
func (o *EditOptions) newFilesFlag() cli.Flag {
	return &cli.StringFlag{Name: "catalog-format", Value: "json", Usage: "file `FORMAT` of a new directory (json|yaml)",
		Destination: &o.files}
}

// bundles is how the bundles and catalogs to add are read.
func (o *EditOptions) bundles() *option.Bundles {
	return &option.Bundles{Images: o.Images, Jobs: o.Jobs, ResolveDigests: o.resolveDigests, ImageTemplate: o.imageTemplate}
}

// Prepare fetches what an edit needs and returns the edit.
type Prepare func(context.Context) (change.Edit, error)

// Ready is the [Prepare] of an edit that needs nothing.
func Ready(e change.Edit) Prepare {
	return func(context.Context) (change.Edit, error) { return e, nil }
}

// changeOptions reads the flags of an edit. path is the path of a new catalog.
func (o *EditOptions) changeOptions(p *option.Session, path string) (change.Options, error) {
	with := change.Options{
		Jobs: o.Jobs, DryRun: o.DryRun, Lossy: o.Lossy, KeepGoing: o.KeepGoing,
		Wait: o.wait, AnyImages: p.Opm,
		Create: o.begins(p), New: change.Directory, Warn: p.WarnAt,
	}
	if with.Wait <= 0 {
		with.Wait = time.Nanosecond // 0 would be the default
	}
	if strings.HasSuffix(path, ".db") || !o.create && !os.IsPathSeparator(lastByte(path)) {
		with.New = change.Database
	}
	if o.files == "" {
		return with, nil
	}
	var err error
	if with.Format, err = declcfg.ParseFormat(o.files); err != nil || with.Format == declcfg.FormatNDJSON {
		return with, cmdline.Usagef("invalid --catalog-format value %q, expected (json|yaml)", o.files)
	}
	return with, nil
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

// CheckCatalog refuses, before anything is fetched, a reference to a catalog that cannot be edited.
func (o *EditOptions) CheckCatalog(p *option.Session, ref string) error {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return err
	case kind == render.BundleDirectory:
		return option.NotCatalogDirectory(ref)
	case kind == render.ManifestsDirectory:
		return option.NotEdited(ref)
	case kind == render.Image && !o.begins(p):
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
func (o *EditOptions) begins(p *option.Session) bool {
	return o.create || strings.HasSuffix(p.Line.Name(""), " registry add")
}

// InPlace edits a directory or a database file and reports the result.
func (o *EditOptions) InPlace(ctx context.Context, p *option.Session, path string, e change.Edit) error {
	if err := o.CheckAccount(path); err != nil {
		return err
	}
	with, err := o.changeOptions(p, path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		e.Always = true // a catalog without bundles is one as well
	}
	r, err := e.InPlace(ctx, path, with)
	if err != nil {
		return editError(p, err)
	}
	if err := o.report(p, path, r); err != nil {
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
