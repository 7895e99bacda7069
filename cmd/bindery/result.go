package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/layers"
)

// resultFlags say where the account of an image goes. They mean the same in every command that writes images.
func resultFlags() []cli.Flag {
	const group = "result"
	return []cli.Flag{
		&cli.StringFlag{Name: "digest-file", Usage: "write the image's digest to `FILE`", Category: group},
		&cli.StringFlag{Name: "iid-file", Usage: "write the image's ID (the digest of its configuration) to `FILE`", Category: group},
		&cli.StringFlag{Name: "image-refs", Usage: "write the image's names with digest to `FILE`, one per line", Category: group},
		&cli.StringFlag{Name: "metadata-file", Usage: "write a JSON account of layers and destinations to `FILE`; \"-\" is standard output, in place of the lines", Category: group},
	}
}

// checkResultFiles refuses, before the image is made, files that cannot be written when it is.
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

// storedPlatform is what a store, which has the image of one platform, gets of an index: the first that --platform
// names. It is zero, which means this machine's, where that flag names none.
func storedPlatform(c *cli.Context) v1.Platform {
	if list, err := cmdline.List(c.StringSlice("platform")); err == nil && len(list) > 0 {
		if p, err := parsePlatform(list[0]); err == nil {
			return p // others have been refused before there was an image
		}
	}
	return v1.Platform{}
}

// warnEvent reports a warning, which several steps of a command can cause, once, and each attempt that failed.
func (p *program) warnEvent(e images.Event) {
	switch e.Kind {
	case images.EventWarning:
		text := e.Err.Error()
		if e.Destination != "" {
			text = e.Destination + ": " + text
		}
		p.warnOnce(text)
	case images.EventRetry:
		p.log.Warn(fmt.Sprintf("%s: attempt %d failed, retrying: %v", e.Destination, e.Attempt, e.Err))
	}
}

// warnOnce gives a warning unless it has been given.
func (p *program) warnOnce(text string) {
	if _, before := p.warnedOnce.LoadOrStore(text, true); !before {
		p.log.Warn(text)
	}
}

// copyOptions say how images are copied.
func (p *program) copyOptions(c *cli.Context) images.CopyOptions {
	return images.CopyOptions{
		Registry: registryOptions(c), Retries: c.Int("retries"), Timeout: c.Duration("timeout"), IfDigest: c.String("if-digest"),
		Platform: storedPlatform(c), Events: p.warnEvent,
	}
}

// checkPush finds out whether registries can be written to, before there is an image to write.
func (p *program) checkPush(ctx context.Context, dests []images.Destination, c *cli.Context) (*images.PushCheck, error) {
	return p.pushCheck(ctx, dests, p.copyOptions(c))
}

// pushCheck is checkPush with options.
func (p *program) pushCheck(ctx context.Context, dests []images.Destination, o images.CopyOptions) (*images.PushCheck, error) {
	check, err := images.CheckPush(ctx, dests, o)
	if err != nil {
		return nil, err
	}
	for _, conflict := range check.Conflicts() {
		p.log.Warn(fmt.Sprintf("%v: this will be a conflict unless the tag already holds the new image", conflict))
	}
	return check, nil
}

// pushChecking is a [program.checkPush] beside the reading of what the image is made of.
type pushChecking struct {
	end   context.CancelCauseFunc
	done  chan struct{}
	check *images.PushCheck // once done is closed
	err   error
}

// beginCheck begins a check. A registry that cannot be written to ends the context of the command, of which the caller
// returns the cause.
func (p *program) beginCheck(c *cli.Context, dests []images.Destination) *pushChecking {
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

// copyImage carries the image to its destinations.
func (p *program) copyImage(ctx context.Context, image *build.Image, dests []images.Destination, c *cli.Context, check *images.PushCheck) ([]images.Result, error) {
	if len(dests) == 0 {
		return nil, nil
	}
	progress := cmdline.NewProgress(p.stderr, p.bars)
	defer progress.Close()
	o := p.copyOptions(c)
	o.Checked = check
	o.Events = func(e images.Event) {
		id := e.Destination + " " + string(e.Blob)
		switch e.Kind {
		case images.EventBlobStart:
			progress.Add("copying", e.Size)
		case images.EventBlobProgress:
			progress.Set(id, e.Done)
		case images.EventBlobDone:
			progress.Set(id, e.Size)
			p.log.Debug("wrote blob", "digest", e.Blob, "bytes", e.Size, "to", e.Destination)
		case images.EventBlobReused:
			p.log.Debug("blob exists already", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
		case images.EventBlobMounted:
			p.log.Debug("blob is mounted from another repository", "digest", e.Blob, "bytes", e.Size, "in", e.Destination)
		default:
			p.warnEvent(e)
		}
	}
	results, err := image.Copy(ctx, dests, o)
	for _, r := range results {
		text := "wrote " + r.Destination
		if r.Traffic != nil {
			text += ": " + trafficLine(*r.Traffic)
		}
		p.log.Info(text)
	}
	return results, err
}

// report writes the files that were asked for and, to standard output, where the image is and what it is.
func (p *program) report(c *cli.Context, t target, image *build.Image, results []images.Result) error {
	refs := t.references(image, results)
	account, err := json.MarshalIndent(newMetadata(image, layers.Compression(c.String("compression")), refs, results), "", "  ")
	if err != nil {
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
	_, err = p.stdout.Write([]byte(b.String()))
	return err
}

// references are the names of an image with its digest, or the digest alone if it has none.
func (t target) references(image *build.Image, results []images.Result) []string {
	d := image.Digest
	var refs []string
	for _, name := range t.names {
		repository, _ := splitName(name)
		refs = append(refs, repository+"@"+d.String())
	}
	for _, r := range results {
		// Only registries know an image by its digest; an image without a name is reported by the digest alone.
		if len(t.names) == 0 && strings.Contains(r.Reference, "@") {
			refs = append(refs, r.Reference)
		}
	}
	if len(refs) == 0 {
		refs = []string{d.String()}
	}
	return refs
}

// trafficLine says what was moved to a registry.
func trafficLine(t images.Traffic) string {
	return fmt.Sprintf("sent %s (%s), mounted %s (%s), reused %s (%s)",
		cmdline.FormatSize(t.Pushed.Bytes), count(t.Pushed.Count, "blob"), cmdline.FormatSize(t.Mounted.Bytes), count(t.Mounted.Count, "blob"),
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
