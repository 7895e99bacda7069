package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/layers"
)

// resultFlags select the output files about a written image. They are the same in every command that writes images.
func resultFlags() []cli.Flag {
	const group = "result"
	return append([]cli.Flag{
		&cli.StringFlag{Name: "digest-file", Usage: "write the image's digest to `FILE`", Category: group},
		&cli.StringFlag{Name: "iid-file", Usage: "write the image's ID (the digest of its configuration) to `FILE`",
			Category: group},
		&cli.StringFlag{Name: "image-refs", Usage: "write the image's names with digest to `FILE`, one per line",
			Category: group},
		&cli.StringFlag{Name: "metadata-file",
			Usage: "write a JSON account of layers and destinations to `FILE`; \"-\" is standard output, in place of " +
				"the lines", Category: group},
	}, supplyFlags()...)
}

// checkResultFiles refuses unwritable output files before the image is built.
func checkResultFiles(c *cli.Context, catalogs ...string) error {
	for _, flag := range []string{"digest-file", "iid-file", "image-refs", "metadata-file"} {
		path := c.String(flag)
		if flag == "metadata-file" && path == "-" {
			continue
		}
		if err := checkResult(flag, path, catalogs...); err != nil {
			return err
		}
	}
	return nil
}

// storedPlatform is the platform whose image goes to a store, which holds one platform: the first in --platform. It is
// zero, which means this machine's, without that flag.
func storedPlatform(c *cli.Context) v1.Platform {
	if list, err := cmdline.List(c.StringSlice("platform")); err == nil && len(list) > 0 {
		if p, err := parsePlatform(list[0]); err == nil {
			return p // invalid platforms were refused before
		}
	}
	return v1.Platform{}
}

// warnEvent logs each failed attempt, and a warning once, as several steps of a command can cause the same one.
func (p *program) warnEvent(e store.Event) {
	switch e.Kind {
	case store.EventWarning:
		text := e.Err.Error()
		if e.Destination != "" {
			text = e.Destination + ": " + text
		}
		p.warnOnce(text)
	case store.EventRetry:
		p.log.Warn(fmt.Sprintf("%s: attempt %d failed, retrying: %v", e.Destination, e.Attempt, e.Err))
	}
}

// logEvent logs what was done with a blob, and what [program.warnEvent] does.
func (p *program) logEvent(e store.Event) {
	switch e.Kind {
	case store.EventBlobDone:
		p.log.Debug("wrote blob", "digest", e.Blob, "bytes", e.Size, "to", e.Destination)
	case store.EventBlobReused:
		p.log.Debug("blob exists already", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
	case store.EventBlobMounted:
		p.log.Debug("blob is mounted from another repository", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
	default:
		p.warnEvent(e)
	}
}

// warnOnce logs a warning unless it was logged before.
func (p *program) warnOnce(text string) {
	if _, before := p.warnedOnce.LoadOrStore(text, true); !before {
		p.log.Warn(text)
	}
}

// copyOptions returns the options for copying images.
func (p *program) copyOptions(c *cli.Context) images.CopyOptions {
	return images.CopyOptions{
		Registry: registryOptions(c), Retries: c.Int("retries"), Timeout: c.Duration("timeout"),
		IfDigest: c.String("if-digest"), Transports: transports,
		Platform: storedPlatform(c), Events: p.warnEvent,
		Attachments: append(p.signing.attachments(), p.supplies.attachments()...),
	}
}

// checkPush checks that registries accept uploads, before there is an image.
func (p *program) checkPush(ctx context.Context, dests []transport.Destination,
	c *cli.Context) (*images.PushCheck, error) {
	return p.pushCheck(ctx, dests, p.copyOptions(c))
}

// pushCheck is checkPush with options.
func (p *program) pushCheck(ctx context.Context, dests []transport.Destination,
	o images.CopyOptions) (*images.PushCheck, error) {
	check, err := images.CheckPush(ctx, dests, o)
	if err != nil {
		return nil, err
	}
	for _, conflict := range check.Conflicts() {
		p.log.Warn(fmt.Sprintf("%v: this will be a conflict unless the tag already holds the new image", conflict))
	}
	return check, nil
}

// pushChecking is a [program.checkPush] that runs while the image's input is read.
type pushChecking struct {
	end   context.CancelCauseFunc
	done  chan struct{}
	check *images.PushCheck // valid after done is closed
	err   error
}

// beginCheck starts a check. A registry that refuses uploads cancels the context of the command; the caller returns the
// cause.
func (p *program) beginCheck(c *cli.Context, dests []transport.Destination) *pushChecking {
	k := &pushChecking{done: make(chan struct{})}
	all := c.Context
	c.Context, k.end = context.WithCancelCause(all)
	go func() {
		defer close(k.done)
		if k.check, k.err = p.checkPush(all, dests, c); k.err != nil {
			k.end(k.err)
		}
	}()
	return k
}

// wait waits for the check, if there is one.
func (k *pushChecking) wait() (*images.PushCheck, error) {
	if k == nil {
		return nil, nil
	}
	<-k.done
	return k.check, k.err
}

// copyImage copies the image to its destinations.
func (p *program) copyImage(ctx context.Context, image *build.Image, dests []transport.Destination, c *cli.Context,
	check *images.PushCheck) ([]images.Result, error) {
	if err := p.supplies.read(ctx, image, len(dests) > 0); err != nil || len(dests) == 0 {
		return nil, err
	}
	moved := p.moved()
	o := p.copyOptions(c)
	o.Checked = check
	o.Events = func(e store.Event) {
		moved.event("writing", e)
		p.logEvent(e)
	}
	results, err := image.Copy(ctx, dests, o)
	for _, r := range results {
		text := "wrote " + r.Destination
		if r.Traffic != nil {
			text += ": " + trafficLine(*r.Traffic)
		}
		p.log.Info(text)
	}
	if made := append(p.signing.made(), p.supplies.made()...); err == nil && len(made) > 0 {
		p.log.Info("signed: " + countMade(made))
	}
	if text := p.supplies.attached(); err == nil && text != "" {
		p.log.Info(text)
	}
	return results, withSigningHint("", err)
}

// report writes the requested files and prints the destinations and the digest of the image.
func (p *program) report(c *cli.Context, t target, image *build.Image, results []images.Result) error {
	refs := t.references(image, results)
	m := newMetadata(image, layers.Compression(c.String("compression")), refs, results)
	m.Signatures = append(p.signing.made(), p.supplies.made()...)
	account, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := p.supplies.writeFiles(c.Context); err != nil {
		return err
	}
	if err := writeResultFiles(c, image, refs, account); err != nil {
		return err
	}
	if c.String("metadata-file") == "-" {
		_, err := p.stdout.Write(append(account, '\n'))
		return err
	}
	var b strings.Builder
	for _, r := range results {
		fmt.Fprintln(&b, r.Destination)
	}
	fmt.Fprintln(&b, refs[len(refs)-1])
	if _, err = p.stdout.Write([]byte(b.String())); err != nil {
		return err
	}
	// The last line names the image as it does after a push.
	inRegistry := func(r images.Result) bool { return r.Traffic != nil }
	if len(t.names) > 0 && !p.opm && !c.Bool("dry-run") && !c.Bool("load") && !slices.ContainsFunc(results, inRegistry) {
		p.log.Info("not pushed (--push)")
	}
	return nil
}

// references returns the image's names with its digest, or the digest alone if it has none.
func (t target) references(image *build.Image, results []images.Result) []string {
	d := image.Digest
	var refs []string
	for _, name := range t.names {
		repository, _ := splitName(name)
		refs = append(refs, repository+"@"+d.String())
	}
	for _, r := range results {
		// Only registries can find an image by digest; an image without a name is reported by its digest alone.
		if len(t.names) == 0 && strings.Contains(r.Reference, "@") {
			refs = append(refs, r.Reference)
		}
	}
	if len(refs) == 0 {
		refs = []string{d.String()}
	}
	return refs
}

// trafficLine describes what was sent to a registry.
func trafficLine(t store.Traffic) string {
	return fmt.Sprintf("sent %s (%s), mounted %s (%s), reused %s (%s)", cmdline.FormatSize(t.Pushed.Bytes),
		count(t.Pushed.Count, "blob"), cmdline.FormatSize(t.Mounted.Bytes), count(t.Mounted.Count, "blob"),
		cmdline.FormatSize(t.Reused.Bytes), count(t.Reused.Count, "blob"))
}

func writeResultFiles(c *cli.Context, image *build.Image, refs []string, account []byte) error {
	id := image.Digest
	if len(image.Platforms) == 1 {
		id = image.Platforms[0].Config
	}
	for _, f := range []struct{ flag, text string }{
		{"digest-file", image.Digest.String()},
		{"iid-file", id.String()},
		{"image-refs", strings.Join(refs, "\n") + "\n"},
		{"metadata-file", string(account) + "\n"},
	} {
		if path := c.String(f.flag); path != "" && path != "-" {
			if err := atomicfs.WriteFile(path, []byte(f.text), 0o666); err != nil {
				return fmt.Errorf("--%s: %w", f.flag, err)
			}
		}
	}
	return nil
}
