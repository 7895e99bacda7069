package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/supply"
)

// Options is an image that is about to be written. [Options.Open] checks all of it before any work.
type Options struct {
	Destination
	Documents
	Files
	// Sign, unless nil, returns how the image is signed, or nil; the keys sign the documents too. Without identities the
	// signatures are for the names of the image. It is called when the destinations are known to be valid.
	Sign func(context.Context) (*signature.SignOptions, error)
	// Copy is how the image is copied.
	Copy images.CopyOptions
	// Compression is that of the layers, for [Metadata].
	Compression layers.Compression
	// Input is what the image is made of, which nothing may be written to. Beside, unless empty, is a directory that is
	// written as well, apart from the image.
	Input, Beside string
	// DryRun builds the image and writes files about it alone.
	DryRun bool
	// Plan makes a workspace, in which the image is planned and not built: no destination is looked at, and nothing can be written.
	Plan bool
	// AnyTypes writes the image with Docker's types where a registry refuses those of OCI.
	AnyTypes bool
	// Warn is called with warnings, which name fields as errors do. AttAlone is that of [signature.Attesting].
	Warn     func(error)
	AttAlone func(error)
}

// Output is an image that is about to be written, after all checks.
type Output struct {
	Options
	Target

	dests     []transport.Destination
	keys      signature.Keys // nil if nothing is signed
	signing   *signature.Signing
	documents *documents
	work      *images.Workspace
	image     *build.Image

	end     context.CancelCauseFunc
	beside  context.Context
	checked chan struct{}
	check   *images.PushCheck // after checked is closed
	refused error             // likewise
}

// Signer returns what signs an image with a target; destinations that keep no signatures are refused, and so is an image
// without a name that its signatures could be for.
func Signer(with signature.SignOptions, t Target, table transport.Table) (*signature.Signing, error) {
	if len(with.Identities) == 0 {
		for _, name := range t.Names {
			if hasRegistry(name) {
				with.Names = append(with.Names, name)
			}
		}
	}
	for _, d := range t.Destinations {
		if err := table.CheckAttachments(d); err != nil {
			return nil, &PlaceError{d.String(), err}
		}
		if !d.InRegistry() && with.Format != signature.FormatBundle && len(with.Identities)+len(with.Names) == 0 {
			return nil, &PlaceError{d.String(), signature.ErrNoIdentity}
		}
	}
	return signature.NewSigning(with), nil
}

// Open checks the fields, makes a workspace, and begins to ask registries whether they take the image. Close the output.
func (o Options) Open(ctx context.Context) (_ *Output, err error) {
	out := &Output{Options: o, checked: make(chan struct{})}
	if o.Plan {
		return out, out.plan(ctx)
	}
	table := o.Copy.Transports
	if out.Target, err = o.Destination.Target(table); err != nil {
		return nil, err
	}
	statements := &supply.Signing{Legacy: o.LegacyAttestations, AttAlone: o.AttAlone, Created: o.SBOM.Created}
	if err := out.sign(ctx); err != nil {
		return nil, err
	}
	statements.Keys = out.keys
	if out.documents, err = o.Documents.prepare(ctx, out.Target, statements, table, o.Input); err != nil {
		return nil, err
	}
	if err := o.Files.Check(o.Input, o.Beside); err != nil {
		return nil, err
	}
	if err := out.checkApart(); err != nil {
		return nil, err
	}
	if out.dests = out.Destinations; o.DryRun {
		out.dests = nil
	}
	out.Copy.IfDigest = o.IfDigest
	if out.signing != nil {
		out.Copy.Attachments = append(out.Copy.Attachments, out.signing)
	}
	out.Copy.Attachments = append(out.Copy.Attachments, out.documents.attachments()...)
	if out.work, err = out.Copy.Workspace(ctx, out.dests); err != nil {
		if errors.Is(err, fs.ErrPermission) && len(o.To)+len(o.Given) == 0 && !o.Push && !o.Load {
			err = &unwritable{err}
		}
		return nil, err
	}
	if _, err := out.Copy.Registry.System(ctx, out.work.Dir()); err != nil { // before the work
		return nil, errors.Join(err, out.work.Close())
	}
	out.beside, out.end = context.WithCancelCause(ctx)
	go out.checkPush(ctx)
	return out, nil
}

// plan opens what a plan needs.
func (out *Output) plan(ctx context.Context) (err error) {
	if err := out.Files.Check(out.Input); err != nil {
		return err
	}
	if out.work, err = images.NewWorkspace(ctx, ""); err != nil {
		return err
	}
	if _, err := out.Copy.Registry.System(ctx, out.work.Dir()); err != nil { // as a build would say
		return errors.Join(err, out.work.Close())
	}
	out.beside, out.end = context.WithCancelCause(ctx)
	close(out.checked)
	return nil
}

// sign finds out how the image is signed.
func (out *Output) sign(ctx context.Context) error {
	if out.Options.Sign == nil {
		return nil
	}
	with, err := out.Options.Sign(ctx)
	if with == nil || err != nil {
		return err
	}
	out.keys = with.Keys
	out.signing, err = Signer(*with, out.Target, out.Copy.Transports)
	return err
}

// Signed tells whether the image is signed.
func (out *Output) Signed() bool { return out.keys != nil }

// unwritable is the error about a working directory in which no image can be written.
type unwritable struct{ error }

func (e *unwritable) Unwrap() error { return e.error }

// IsUnwritable tells whether an error is that of an image without a destination, whose layout cannot be in the working
// directory.
func IsUnwritable(err error) bool { return errors.As(err, new(*unwritable)) }

// checkApart refuses destinations in files that are in the input, or in what is written beside the image.
func (out *Output) checkApart() error {
	for _, d := range out.Destinations {
		if !d.InFiles() {
			continue
		}
		if err := atomicfs.CheckApart(out.Input, d.Path); out.Input != "" && err != nil {
			return err
		}
		if out.Beside == "" {
			continue
		}
		if err := errors.Join(atomicfs.CheckApart(out.Beside, d.Path), atomicfs.CheckApart(d.Path, out.Beside)); err != nil {
			return err
		}
	}
	return nil
}

// checkPush asks registries, beside the work. One that refuses uploads ends what runs beside it.
func (out *Output) checkPush(ctx context.Context) {
	defer close(out.checked)
	out.refused = guard.Call(func() (err error) {
		out.check, err = out.Copy.CheckPush(ctx, out.dests)
		return err
	})
	if out.refused != nil {
		out.end(out.refused)
		return
	}
	WarnOfConflicts(out.check, out.Warn)
}

// WarnOfConflicts says which tags have other images than the condition of a copy names.
func WarnOfConflicts(check *images.PushCheck, warn func(error)) {
	for _, conflict := range check.Conflicts() {
		warn(fmt.Errorf("%v: this will be a conflict unless the tag already holds the new image", conflict))
	}
}

// Dir is the directory of temporary files, which [Output.Close] removes.
func (out *Output) Dir() string { return out.work.Dir() }

// Ready waits until it is known that registries take the image, and until its keys are open.
func (out *Output) Ready() error {
	if <-out.checked; out.refused != nil {
		return out.refused
	}
	if out.keys == nil {
		return nil
	}
	_, err := out.keys(context.Background()) // it takes a part of a second and is not interrupted
	return err
}

// Prepare gives the options of a build what they need of the output. The context ends if a registry refuses the image.
func (out *Output) Prepare(with *build.Options) context.Context {
	with.Dir, with.Ready = out.work.Dir(), out.Ready
	return out.beside
}

// Write writes the assembled image, or returns the error that there is in its place, unless a registry has refused it. After
// an error in the last steps of a copy the result has what was written all the same; it is nil if nothing was.
func (out *Output) Write(image *build.Image, err error) (*Result, error) {
	if <-out.checked; out.refused != nil {
		if err == nil {
			_ = image.Close() // the registry's refusal is the error
		}
		return nil, out.refused
	}
	if err != nil {
		return nil, err
	}
	if out.Plan {
		return nil, errors.Join(errors.New("an image that is planned is not written"), image.Close())
	}
	out.image = image
	r := &Result{Image: image, compression: out.Compression}
	if len(out.dests) == 0 {
		err = out.documents.read(out.beside, image, false)
	} else {
		err = out.copy(r)
	}
	r.References = References(out.Names, image, r.Written)
	return r, err
}

// copy copies the image to its destinations.
func (out *Output) copy(r *Result) (err error) {
	with := out.Copy
	with.Checked = out.check
	copied := func() (written []images.Result, err error) {
		if err := out.documents.read(out.beside, r.Image, true); err != nil {
			return nil, err
		}
		return r.Image.Copy(out.beside, out.dests, with)
	}
	if r.Written, err = CopyTyped(out.beside, r.Image, out.AnyTypes, out.Warn, copied); err != nil {
		return err
	}
	if out.signing != nil {
		r.Signatures = signature.Sorted(out.signing.Made())
	}
	r.Signatures = append(r.Signatures, out.documents.made()...)
	if d := out.documents; d != nil {
		for _, f := range d.formats {
			r.SBOMs = append(r.SBOMs, string(f))
		}
		r.Provenance = d.Provenance
	}
	return nil
}

// CopyTyped copies an image with a function. If a destination refuses the types of OCI and the image may have any, it gets
// Docker's types, and so another digest, and is copied again. The error is that of the first copy, and also that of the
// second if it fails for another reason: an OCI layout takes no Docker's types, for example.
func CopyTyped(ctx context.Context, image *build.Image, anyTypes bool, warn func(error),
	copied func() ([]images.Result, error)) ([]images.Result, error) {
	results, refused := copied()
	if !errors.Is(refused, store.ErrNoOCI) || !anyTypes || image.ToDocker() != nil {
		return results, refused
	}
	results, err := copied()
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, store.ErrNoOCI):
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("%w; with Docker's types: %w", refused, err)
	}
	warn(fault.Fieldf("written with Docker's types, as a registry refuses those of OCI: %w; {Format} docker says so without this warning",
		redact.Error(refused)))
	return results, nil
}

// WriteFiles writes the files about the image.
func (out *Output) WriteFiles(ctx context.Context, r *Result) error {
	if err := out.documents.writeFiles(ctx); err != nil {
		return err
	}
	return out.Files.write(r)
}

// Close ends the checks, and removes the workspace; the image is closed too.
func (out *Output) Close(ctx context.Context) error {
	<-out.checked
	errs := []error{out.check.Close(ctx)}
	out.end(nil)
	if out.image != nil {
		errs = append(errs, out.image.Close())
	}
	slices.Reverse(errs) // the image before the check, as it may read through it
	return errors.Join(append(errs, out.work.Close())...)
}
