package option

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
)

// Result are the files about an image that is written.
type Result struct{ DigestFile, IIDFile, ImageRefs, MetadataFile string }

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

// files are the files by their flags.
func (o *Result) files() [][2]string {
	return [][2]string{{"digest-file", o.DigestFile}, {"iid-file", o.IIDFile}, {"image-refs", o.ImageRefs},
		{"metadata-file", o.MetadataFile}}
}

// CheckFiles refuses files that cannot be written, before the image is built.
func (o *Result) CheckFiles(catalogs ...string) error {
	for _, f := range o.files() {
		if flag, path := f[0], f[1]; flag != "metadata-file" || path != "-" {
			if err := CheckResult(flag, path, catalogs...); err != nil {
				return err
			}
		}
	}
	return nil
}

// storedPlatform is the platform whose image goes to a store, which holds one platform: the first in --platform. It is
// zero, which means this machine's, without that flag.
func (o *Images) storedPlatform() v1.Platform {
	if list, err := cmdline.List(o.Platforms.Value()); err == nil && len(list) > 0 {
		if p, err := ParsePlatform(list[0]); err == nil {
			return p // invalid platforms were refused before
		}
	}
	return v1.Platform{}
}

// CopyOptions returns how images are copied that are not built here.
func (o *Registry) CopyOptions(p *Session) images.CopyOptions {
	return images.CopyOptions{Options: o.DestAccess(p), Timeout: o.Timeout, Transports: program.Transports}
}

// CopyOptions returns how the image is copied.
func (o *Image) CopyOptions(p *Session) images.CopyOptions {
	with := o.Registry.CopyOptions(p)
	with.IfDigest, with.Platform = o.IfDigest, o.storedPlatform()
	with.Attachments = append(p.Signing.Attachments(), p.supplies.attachments()...)
	return with
}

// CheckPush checks that registries accept uploads, before there is an image.
func (o *Image) CheckPush(ctx context.Context, p *Session, dests []transport.Destination) (*images.PushCheck, error) {
	return p.PushCheck(ctx, dests, o.CopyOptions(p))
}

// PushCheck is like checkPush with options.
func (p *Session) PushCheck(ctx context.Context, dests []transport.Destination,
	o images.CopyOptions) (*images.PushCheck, error) {
	check, err := o.CheckPush(ctx, dests)
	if err != nil {
		return nil, err
	}
	for _, conflict := range check.Conflicts() {
		p.Log.Warn(fmt.Sprintf("%v: this will be a conflict unless the tag already holds the new image", conflict))
	}
	return check, nil
}

// pushChecking is a [images.CopyOptions.CheckPush] that runs while the image's input is read.
type pushChecking struct {
	end   context.CancelCauseFunc
	done  chan struct{}
	check *images.PushCheck // valid after done is closed
	err   error
}

// beginCheck starts a check, and returns the context for what runs beside it. A registry that refuses uploads cancels
// that context; the caller returns the cause.
func (o *Image) beginCheck(ctx context.Context, p *Session, dests []transport.Destination) (context.Context, *pushChecking) {
	k := &pushChecking{done: make(chan struct{})}
	beside, end := context.WithCancelCause(ctx)
	k.end = end
	go func() {
		defer close(k.done)
		k.err = guard.Call(func() (err error) {
			k.check, err = o.CheckPush(ctx, p, dests)
			return err
		})
		if k.err != nil {
			k.end(k.err)
		}
	}()
	return beside, k
}

// Wait waits for the check, if there is one.
func (k *pushChecking) Wait() (*images.PushCheck, error) {
	if k == nil {
		return nil, nil
	}
	<-k.done
	return k.check, k.err
}

// CopyImage copies the image to its destinations.
func (o *Image) CopyImage(ctx context.Context, p *Session, image *build.Image, dests []transport.Destination,
	check *images.PushCheck) ([]images.Result, error) {
	if len(dests) == 0 {
		return nil, p.supplies.read(ctx, image, false)
	}
	moved := p.Moved()
	with := o.CopyOptions(p)
	with.Checked = check
	with.Events = func(e store.Event) {
		moved.Event("writing", e)
		p.LogEvent(e)
	}
	results, err := p.CopyTyped(ctx, image, func() ([]images.Result, error) {
		if err := p.supplies.read(ctx, image, true); err != nil {
			return nil, err
		}
		return image.Copy(ctx, dests, with)
	})
	for _, r := range results {
		text := "wrote " + r.Destination
		if r.Traffic != nil {
			text += ": " + TrafficLine(*r.Traffic)
		}
		p.Log.Info(text)
	}
	if made := append(p.Signing.made(), p.supplies.made()...); err == nil && len(made) > 0 {
		p.Log.Info("signed: " + countMade(made))
	}
	if text := p.supplies.attached(); err == nil && text != "" {
		p.Log.Info(text)
	}
	return results, WithSigningHint("", err)
}

// CopyTyped copies an image with a function. If a destination refuses the types of OCI and no format is given, the image
// gets Docker's types, and so another digest, and is copied again. The error is that of the first copy, and also
// that of the second if it fails for another reason: an OCI layout takes no Docker's types, for example.
func (p *Session) CopyTyped(ctx context.Context, image *build.Image,
	copyImage func() ([]images.Result, error)) ([]images.Result, error) {
	results, refused := copyImage()
	if !errors.Is(refused, store.ErrNoOCI) || p.Given("format") || image.ToDocker() != nil {
		return results, refused
	}
	results, err := copyImage()
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, store.ErrNoOCI):
		return nil, refused
	case err != nil:
		return nil, fmt.Errorf("%w; with Docker's types: %w", refused, err)
	}
	p.WarnOnce(fmt.Sprintf("written with Docker's types, as a registry refuses those of OCI: %v; --format docker says so without "+
		"this warning", redact.Error(refused)))
	return results, nil
}

// Report writes the requested files and prints the destinations and the digest of the image.
func (o *Image) Report(ctx context.Context, p *Session, t Target, image *build.Image, results []images.Result) error {
	refs := t.References(image, results)
	m := newMetadata(image, layers.Compression(o.Compression), refs, results)
	m.Signatures = append(p.Signing.made(), p.supplies.made()...)
	account, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := p.supplies.writeFiles(ctx); err != nil {
		return err
	}
	if err := o.writeFiles(image, refs, account); err != nil {
		return err
	}
	if o.MetadataFile == "-" {
		_, err := p.Stdout.Write(append(account, '\n'))
		return err
	}
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintln(&b, r.Destination)
	}
	fmt.Fprintln(&b, refs[len(refs)-1])
	if _, err = p.Stdout.Write([]byte(b.String())); err != nil {
		return err
	}
	// The last line names the image as it does after a push.
	inRegistry := func(r images.Result) bool { return r.Traffic != nil }
	if len(t.Names) > 0 && !p.Opm && !o.DryRun && !o.Load && !slices.ContainsFunc(results, inRegistry) {
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

func (o *Result) writeFiles(image *build.Image, refs []string, account []byte) error {
	id := image.Digest
	if len(image.Platforms) == 1 {
		id = image.Platforms[0].Config
	}
	texts := []string{image.Digest.String(), id.String(), strings.Join(refs, "\n") + "\n", string(account) + "\n"}
	for i, f := range o.files() {
		if flag, path := f[0], f[1]; path != "" && path != "-" {
			if err := atomicfs.WriteFile(path, []byte(texts[i]), 0o666); err != nil {
				return fmt.Errorf("--%s: %w", flag, err)
			}
		}
	}
	return nil
}
