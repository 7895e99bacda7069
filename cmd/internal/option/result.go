package option

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
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/layers"
)

// ResultFlags select the output files about a written image. They are the same in every command that writes images.
func ResultFlags() []cli.Flag {
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

// CheckResultFiles refuses unwritable output files before the image is built.
func CheckResultFiles(c *cli.Context, catalogs ...string) error {
	for _, flag := range []string{"digest-file", "iid-file", "image-refs", "metadata-file"} {
		path := c.String(flag)
		if flag == "metadata-file" && path == "-" {
			continue
		}
		if err := CheckResult(flag, path, catalogs...); err != nil {
			return err
		}
	}
	return nil
}

// storedPlatform is the platform whose image goes to a store, which holds one platform: the first in --platform. It is
// zero, which means this machine's, without that flag.
func storedPlatform(c *cli.Context) v1.Platform {
	if list, err := cmdline.List(c.StringSlice("platform")); err == nil && len(list) > 0 {
		if p, err := ParsePlatform(list[0]); err == nil {
			return p // invalid platforms were refused before
		}
	}
	return v1.Platform{}
}

// CopyOptions returns the options for copying images.
func (p *Session) CopyOptions(c *cli.Context) images.CopyOptions {
	return images.CopyOptions{
		Registry: RegistryOptions(c), Retries: c.Int("retries"), Timeout: c.Duration("timeout"),
		IfDigest: c.String("if-digest"), Transports: program.Transports,
		Platform: storedPlatform(c), Events: p.WarnEvent,
		Attachments: append(p.Signing.Attachments(), p.supplies.attachments()...),
	}
}

// CheckPush checks that registries accept uploads, before there is an image.
func (p *Session) CheckPush(ctx context.Context, dests []transport.Destination,
	c *cli.Context) (*images.PushCheck, error) {
	return p.PushCheck(ctx, dests, p.CopyOptions(c))
}

// PushCheck is checkPush with options.
func (p *Session) PushCheck(ctx context.Context, dests []transport.Destination,
	o images.CopyOptions) (*images.PushCheck, error) {
	check, err := images.CheckPush(ctx, dests, o)
	if err != nil {
		return nil, err
	}
	for _, conflict := range check.Conflicts() {
		p.Log.Warn(fmt.Sprintf("%v: this will be a conflict unless the tag already holds the new image", conflict))
	}
	return check, nil
}

// pushChecking is a [CheckPush] that runs while the image's input is read.
type pushChecking struct {
	end   context.CancelCauseFunc
	done  chan struct{}
	check *images.PushCheck // valid after done is closed
	err   error
}

// beginCheck starts a check. A registry that refuses uploads cancels the context of the command; the caller returns the
// cause.
func (p *Session) beginCheck(c *cli.Context, dests []transport.Destination) *pushChecking {
	k := &pushChecking{done: make(chan struct{})}
	all := c.Context
	c.Context, k.end = context.WithCancelCause(all)
	go func() {
		defer close(k.done)
		if k.check, k.err = p.CheckPush(all, dests, c); k.err != nil {
			k.end(k.err)
		}
	}()
	return k
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
func (p *Session) CopyImage(ctx context.Context, image *build.Image, dests []transport.Destination, c *cli.Context,
	check *images.PushCheck) ([]images.Result, error) {
	if err := p.supplies.read(ctx, image, len(dests) > 0); err != nil || len(dests) == 0 {
		return nil, err
	}
	moved := p.Moved()
	o := p.CopyOptions(c)
	o.Checked = check
	o.Events = func(e store.Event) {
		moved.Event("writing", e)
		p.LogEvent(e)
	}
	results, err := image.Copy(ctx, dests, o)
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

// Report writes the requested files and prints the destinations and the digest of the image.
func (p *Session) Report(c *cli.Context, t Target, image *build.Image, results []images.Result) error {
	refs := t.References(image, results)
	m := newMetadata(image, layers.Compression(c.String("compression")), refs, results)
	m.Signatures = append(p.Signing.made(), p.supplies.made()...)
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
	if len(t.Names) > 0 && !p.Opm && !c.Bool("dry-run") && !c.Bool("load") && !slices.ContainsFunc(results, inRegistry) {
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
