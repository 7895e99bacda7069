package option

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/supply/publish"
)

// Result are the files about an image that is written.
type Result struct{ publish.Files }

// Flags are the flags of every command that writes images.
func (o *Result) Flags() []cli.Flag {
	const group = "result"
	return []cli.Flag{
		&cli.StringFlag{Name: "digest-file", Usage: "write the image's digest to `FILE`", Category: group,
			Destination: &o.DigestFile},
		&cli.StringFlag{Name: "iid-file", Usage: "write the image's ID (the digest of its configuration) to `FILE`",
			Category: group, Destination: &o.IIDFile},
		&cli.StringFlag{Name: "image-refs", Usage: "write the image's names with digest to `FILE`, one per line",
			Category: group, Destination: &o.ImageRefs},
		&cli.StringFlag{Name: "metadata-file", Category: group, Destination: &o.MetadataFile,
			Usage: "write a JSON account of layers and destinations to `FILE`; \"-\" is standard output, in place of " +
				"the lines"},
	}
}

// CopyOptions returns how images are copied that are not built here.
func (o *Registry) CopyOptions(p *Session) images.CopyOptions {
	return images.CopyOptions{Options: o.DestAccess(p), Timeout: o.Timeout, Transports: program.Transports}
}

// CopyOptions returns how the image is copied. To a store, which holds one platform, goes the image for the first in
// --platform; without that flag it is that for this machine.
func (o *Image) CopyOptions(p *Session) images.CopyOptions {
	with := o.Registry.CopyOptions(p)
	if list, err := cmdline.List(o.Platforms.Value()); err == nil && len(list) > 0 {
		with.Platform, err = ParsePlatform(list[0])
		if err != nil {
			with.Platform = v1.Platform{} // invalid platforms were refused before
		}
	}
	return with
}

// PublishOptions reads the flags about the image that is about to be written. in is its input.
func (o *Image) PublishOptions(p *Session, in string) (with publish.Options, err error) {
	with = publish.Options{Files: o.Files, Copy: o.CopyOptions(p), Compression: o.Compression, Input: in,
		DryRun: o.DryRun, AnyTypes: !p.Given("format"), AttAlone: p.AttAlone,
		Sign: func(ctx context.Context) (*signature.SignOptions, error) { return o.Signing.Prepare(ctx, p) },
		Warn: p.WarnOf}
	moved := p.Moved()
	with.Copy.Events = func(e store.Event) {
		moved.Event("writing", e)
		p.LogEvent(e)
	}
	if with.Destination, err = o.Destination.Options(); err == nil {
		with.Documents, err = o.documents(p, in)
	}
	return with, err
}

// WarnOf logs a warning of the domain once, with flags in place of fields.
func (p *Session) WarnOf(err error) { p.WarnOnce(program.InFlags(err).Error()) }

// Output is an image that is about to be written, with the progress of the work on it.
type Output struct {
	*publish.Output
	o        *Image
	p        *Session
	progress *cmdline.Progress
}

// Begin begins to write the image of an input, which destinations must not overwrite: it checks the flags, and gives the
// options what they need. The context is for assembling the image. Close the output. With --plan nothing is written.
func (o *Image) Begin(ctx context.Context, p *Session, in string, with *build.Options) (*Output, context.Context, error) {
	to := publish.Options{Files: o.Files, Copy: o.CopyOptions(p), Input: in, Plan: o.Plan}
	var err error
	if o.Plan {
		err = checkPlan(p)
	} else {
		to, err = o.PublishOptions(p, in)
	}
	if err != nil {
		return nil, nil, err
	}
	out, err := o.Output(ctx, p, to)
	if err != nil {
		return nil, nil, err
	}
	return out, out.Prepare(with), nil
}

// Output begins to write an image: it checks the options and the registries.
func (o *Image) Output(ctx context.Context, p *Session, with publish.Options) (*Output, error) {
	out, err := with.Open(ctx)
	switch {
	case errors.Is(err, publish.ErrNoName):
		e := cmdline.Usagef("required flag(s) \"tag\" not set")
		e.Hint = "name the image with -t NAME"
		return nil, e
	case publish.IsUnwritable(err):
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Err: err,
			Hint: "without --push, --load and --to the image is written to the working directory"}
	case err != nil:
		return nil, p.withPlaceHint(err)
	}
	o.warnOfProvenance(p, out.Signed())
	return &Output{Output: out, o: o, p: p}, nil
}

// Prepare is [publish.Output.Prepare], and shows the progress of the build.
func (out *Output) Prepare(with *build.Options) context.Context {
	if out.Plan {
		return out.Output.Prepare(with)
	}
	out.progress = out.p.Progress()
	with.Planned = func(layers int) { out.progress.Update(func(s *cmdline.State) { s.All += layers }) }
	with.Events = func(l build.Layer) {
		out.progress.Update(func(s *cmdline.State) {
			s.What, s.Units, s.Now = "packing", "layers", strings.Join(l.Packages, ", ")
			s.Done, s.Bytes = s.Done+1, s.Bytes+l.Uncompressed
		})
		out.p.Log.Debug("built layer", "kind", string(l.Kind), "digest", l.Digest, "bytes", l.Size)
	}
	return out.Output.Prepare(with)
}

// Write is [publish.Output.Write], and logs what was written.
func (out *Output) Write(image *build.Image, err error) (*publish.Result, error) {
	if out.progress != nil {
		out.progress.Close()
	}
	p := out.p
	r, err := out.Output.Write(image, err)
	if r == nil {
		return nil, err
	}
	for _, w := range r.Written {
		text := "wrote " + w.Destination
		if w.Traffic != nil {
			text += ": " + TrafficLine(*w.Traffic)
		}
		p.Log.Info(text)
	}
	if err != nil {
		return nil, WithSigningHint("", err)
	}
	if len(r.Signatures) > 0 {
		p.Log.Info("signed: " + countMade(r.Signatures))
	}
	var attached []string
	if len(r.SBOMs) > 0 {
		attached = append(attached, "the bill of materials ("+strings.Join(r.SBOMs, ", ")+")")
	}
	if r.Provenance {
		attached = append(attached, "the provenance")
	}
	if attached != nil {
		p.Log.Info("attached " + strings.Join(attached, " and "))
	}
	return r, nil
}

// Finish writes an assembled image, or returns the error that there is in its place, and reports.
func (out *Output) Finish(ctx context.Context, image *build.Image, err error) error {
	r, err := out.Write(image, err)
	if err != nil {
		return err
	}
	return out.Report(ctx, r)
}

// Report writes the requested files and prints the destinations and the digest of the image.
func (out *Output) Report(ctx context.Context, r *publish.Result) error {
	o, p := out.o, out.p
	if err := out.WriteFiles(ctx, r); err != nil {
		return err
	}
	if o.MetadataFile == "-" {
		account, err := r.Account()
		if err == nil {
			_, err = p.Stdout.Write(account)
		}
		return err
	}
	var b strings.Builder
	for _, w := range r.Written {
		fmt.Fprintln(&b, w.Destination)
	}
	fmt.Fprintln(&b, r.References[len(r.References)-1])
	if _, err := p.Stdout.Write([]byte(b.String())); err != nil {
		return err
	}
	// The last line names the image as it does after a push.
	if len(out.Names) > 0 && !p.Opm && !o.DryRun && !o.Load && !r.Pushed() {
		p.Log.Info("not pushed (--push)")
	}
	return nil
}

// TrafficLine describes what was sent to a registry.
func TrafficLine(t store.Traffic) string {
	return fmt.Sprintf("sent %s (%s), mounted %s (%s), reused %s (%s)", cmdline.FormatSize(t.Pushed.Bytes),
		program.Count(t.Pushed.Count, "blob"), cmdline.FormatSize(t.Mounted.Bytes), program.Count(t.Mounted.Count, "blob"),
		cmdline.FormatSize(t.Reused.Bytes), program.Count(t.Reused.Count, "blob"))
}

// countMade counts signatures and attestations in words.
func countMade(made []signature.Made) string {
	signatures, attestations, found := 0, 0, 0
	for _, m := range made {
		if m.PredicateType != "" {
			attestations++
		} else {
			signatures++
		}
		if m.Found {
			found++
		}
	}
	var parts []string
	if signatures > 0 {
		parts = append(parts, program.Count(signatures, "signature"))
	}
	if attestations > 0 {
		parts = append(parts, program.Count(attestations, "attestation"))
	}
	text := strings.Join(parts, ", ")
	if found > 0 {
		text += fmt.Sprintf("; %d of them found", found)
	}
	return text
}

// ReportAssembled logs the size of an assembled image.
func (p *Session) ReportAssembled(image *build.Image, start time.Time) {
	p.Log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", program.Count(image.Totals.Packages, "package"), LayerCount(image),
		cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
}

// LayerCount describes the number of an image's layers, and how many of them were reused.
func LayerCount(image *build.Image) string {
	known := 0
	for _, l := range image.Layers {
		if l.Remembered {
			known++
		}
	}
	text := program.Count(image.Totals.Layers, "layer")
	if known > 0 {
		text += fmt.Sprintf(" (%d cached)", known)
	}
	return text
}
