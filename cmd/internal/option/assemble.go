package option

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// ReportAssembled logs the size of an assembled image.
func (p *Session) ReportAssembled(image *build.Image, start time.Time) {
	p.Log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", program.Count(image.Totals.Packages, "package"), LayerCount(image),
		cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
}

// Make is the common part of all commands that build images: it determines the destinations before any work,
// assembles the image while registries are checked, copies it and reports. in is the input, which destinations must not
// overwrite. account is called before the result is printed.
func (o *Image) Make(ctx context.Context, p *Session, in string, with build.Options,
	assemble func(context.Context, build.Options) (*build.Image, error), account ...func() error) (err error) {
	target, err := o.target()
	if err == nil {
		err = o.Signing.Prepare(ctx, p, target)
	}
	if err == nil {
		err = o.PrepareSupplies(ctx, p, target, in)
	}
	if err != nil {
		return err
	}
	if err := o.CheckFiles(in); err != nil {
		return err
	}
	dests := target.Destinations
	if o.DryRun {
		dests = nil
	}
	if in != "" {
		if err := CheckDestinations(in, dests); err != nil {
			return err
		}
	}
	work, err := o.CopyOptions(p).Workspace(ctx, dests)
	if err != nil {
		return o.WithOutputHint(err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	with.Dir = work.Dir()
	if _, err = o.Access(p).Registry.System(ctx, work.Dir()); err != nil { // before the work
		return err
	}
	beside, checking := o.beginCheck(ctx, p, dests)
	p.Checking = checking
	defer func() {
		check, _ := p.Checking.Wait()
		err = errors.Join(err, check.Close(ctx))
		p.Checking.end(nil)
		p.Checking = nil
	}()
	image, err := assemble(beside, with)
	check, denied := p.Checking.Wait()
	if denied != nil {
		if err == nil {
			_ = image.Close() // the registry's refusal is the error
		}
		return denied
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	results, err := o.CopyImage(beside, p, image, dests, check)
	if err != nil {
		return err
	}
	for _, f := range account {
		if err := f(); err != nil {
			return err
		}
	}
	return o.Report(beside, p, target, image, results)
}

// Assemble shows on a terminal the progress of assembling an image. It runs work when the registries are known to be
// writable.
func (p *Session) Assemble(o *build.Options, work func() (*build.Image, error)) (*build.Image, error) {
	if _, err := p.Checking.Wait(); err != nil {
		return nil, err
	}
	if err := p.Signing.opened(); err != nil {
		return nil, err
	}
	progress := p.Progress()
	defer progress.Close()
	o.Planned = func(layers int) { progress.Update(func(s *cmdline.State) { s.All += layers }) }
	o.Events = func(l build.Layer) {
		progress.Update(func(s *cmdline.State) {
			s.What, s.Units, s.Now = "packing", "layers", strings.Join(l.Packages, ", ")
			s.Done, s.Bytes = s.Done+1, s.Bytes+l.Uncompressed
		})
		p.Log.Debug("built layer", "kind", string(l.Kind), "digest", l.Digest, "bytes", l.Size)
	}
	return work()
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
