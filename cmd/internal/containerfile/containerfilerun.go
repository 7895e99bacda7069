//go:build !nobuildah

package containerfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/containerfile/fullbuild"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/layers"
)

// runContainerfile builds a Containerfile with RUN instructions. It exists only in programs with buildah, and restarts
// the program in a user namespace.
func runContainerfile(ctx context.Context, p *option.Session, o *option.Image, b *ofContainerfile, with build.Options, of []v1.Platform,
	see seeing) (err error) {
	if with.Compression == build.CompressionAuto {
		return cmdline.Usagef("--compression auto does not support RUN: two runs need not produce the same files")
	}
	if o.RequireSigned || p.Given("trusted-key") || p.Given("trusted-identity") {
		return cmdline.Usagef("--require-signed, --trusted-key and --trusted-identity do not support RUN: the library that runs commands " +
			"fetches the images; set a policy with --policy FILE")
	}
	var stdin io.Reader
	if b.File.Name == "-" {
		stdin = bytes.NewReader(b.text) // standard input has been read already
	}
	policy, err := o.PolicyFile(p)
	if err != nil {
		return err
	}
	status, done, err := fullbuild.Enter(stdin)
	if err != nil {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: b.File.Name, Err: err,
			Hint: "files without RUN can be built by any user"}
	}
	if done {
		if status == 0 {
			return nil
		}
		return &cmdline.ExitStatus{Status: status}
	}
	// Not in the destination's directory: not every file system supports the store of the build.
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	r := fullbuild.Request{
		File: b.File.Name, Context: b.o.Context, Contexts: b.o.Contexts, Target: b.o.Target, Args: b.o.Args,
		Platforms: of, Secrets: b.secrets, Labels: pairs(with.Labels), Annotations: pairs(with.Annotations),
		Format: fullbuild.Format(with.Format), Zstd: with.Compression == layers.Zstd, Created: with.Created,
		Dir: filepath.Join(work.Dir(), "build"), Policy: policy, Retries: o.Given.Retries, Log: p.Stderr,
	}
	if r.Log = p.Stderr; p.Quiet {
		r.Log = io.Discard
	}
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		return err
	}
	if b.File.Name == "-" {
		r.File = filepath.Join(work.Dir(), "Containerfile")
		if err := os.WriteFile(r.File, b.text, 0o600); err != nil {
			return err
		}
	}
	for _, platform := range of {
		references, err := b.File.References(b.o.Args, platform)
		if err != nil {
			return err
		}
		for _, ref := range references {
			r.Images = append(r.Images, fullbuild.Image{Name: ref.Name, Platform: ref.Platform, Build: platform})
		}
	}
	out, within, err := o.Begin(ctx, p, "", &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	image, err := runCommands(within, p, o, b, r, with, see)
	return out.Finish(ctx, image, err)
}

// runCommands builds the image with buildah.
func runCommands(ctx context.Context, p *option.Session, o *option.Image, b *ofContainerfile, r fullbuild.Request, with build.Options,
	see seeing) (*build.Image, error) {
	if err := with.Ready(); err != nil {
		return nil, err // before commands run
	}
	start := time.Now()
	var err error
	if r.System, err = o.Access(p).Registry.System(ctx, with.Dir); err != nil {
		return nil, err
	}
	result, err := fullbuild.Build(ctx, r)
	var exit *fullbuild.ExitError
	if errors.As(err, &exit) {
		return nil, &cmdline.ExitStatus{Status: exit.Status,
			Err: &cmdline.Error{Class: cmdline.ClassInput, Object: b.File.Name, Err: err}}
	}
	if err != nil {
		return nil, err
	}
	if see != nil {
		if err := seeDirectory(ctx, result.Dirs[0], see); err != nil {
			return nil, err
		}
	}
	image, err := build.Directories(ctx, result.Dirs, with)
	if err == nil {
		p.Log.Info(fmt.Sprintf("built %s, %s, %s, in %s", b.File.Name, option.LayerCount(image),
			cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
	}
	return image, err
}

// seeDirectory opens an image in a "dir:" directory and calls see with it.
func seeDirectory(ctx context.Context, dir string, see seeing) (err error) {
	client, err := images.NewClient(images.ClientOptions{Transports: program.Transports, AnyPlatform: true, NoPolicy: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	img, err := client.Image(ctx, string(transport.Directory)+":"+dir, v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	labels := img.Config.Config.Labels
	files, err := img.Extract(ctx, bundle.Paths(labels), images.ExtractOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return see(ctx, labels, files)
}

// pairs returns the entries of a map as sorted KEY=VALUE texts.
func pairs(m map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}
