//go:build !nobuildah

package containerfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/containerfile/evaluator"
	"github.com/operator-bindery/bindery/build/containerfile/fullbuild"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/rootless"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// SmallBuild tells that this build has neither Containerfiles nor the podman store.
const SmallBuild = false

// options are the flags of the command.
type options struct {
	option.Image
	Inputs
	file string
}

// BuildContainerfileCommand returns "build containerfile".
func BuildContainerfileCommand(p *option.Session) *cli.Command {
	o := &options{}
	all := program.Flags(o.Destination.Flags(), []cli.Flag{
		&cli.StringFlag{Name: "file", Aliases: []string{"f"}, Destination: &o.file,
			Usage: "Containerfile `FILE` (default Containerfile or Dockerfile in the context); \"-\" is " +
				"standard input",
			Category: "content"},
	}, o.Inputs.Flags(), []cli.Flag{o.PlatformsFlag("what", "linux and this machine's architecture")},
		o.Form.Flags("what"), []cli.Flag{o.MaxFlag("what"), o.DryRunFlag(), option.JobsFlag(&o.Jobs, "work")})
	return &cli.Command{
		Name:      "containerfile",
		Usage:     "build an image from a Containerfile (Dockerfile)",
		ArgsUsage: "CONTEXT",
		Description: `The file is parsed as buildah parses it and evaluated without running commands: no
daemon, no root, no user namespace. All instructions are supported except RUN; of RUN only "opm serve DIR
--cache-dir=DIR --cache-only" is, which creates the same cache as opm. COPY and ADD copy files of CONTEXT that
neither .containerignore nor .dockerignore excludes; links never lead out of CONTEXT. Each stage becomes one
layer. The build is reproducible: the creation time is SOURCE_DATE_EPOCH, or 1970, and files in layers are
dated 1970 (SOURCE_DATE_EPOCH if the file has RUN).

Without --push and --to the image is written to the OCI layout NAME.oci in the working directory. Standard
output lists the destinations, one per line, and last the image's name with its digest.` +
			program.Examples("bindery build containerfile bundle -f bundle.Dockerfile -t registry.example.com/acme/etcd:v0.9.4",
				"bindery build containerfile bundle -f bundle.Dockerfile -t example.com/acme/etcd:v1 --to "+
					"oci-archive:etcd.tar --build-arg VERSION=1 --target 0",
				"bindery build containerfile bundle -f bundle.Dockerfile -t registry.example.com/acme/etcd:v1 --push "+
					"--platform linux/amd64,linux/arm64 --dry-run"),
		Flags: program.Flags(all, o.Result.Flags(), o.Supply.Flags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return buildContainerfile(ctx, p, o, args[0])
		})),
	}
}

// ofContainerfile is one build of a Containerfile.
type ofContainerfile struct {
	File    *evaluator.File
	text    []byte // of the file
	o       evaluator.Options
	secrets []string
}

// Read reads the file with a name, or that in the context, for a build with these inputs.
func Read(ctx context.Context, p *option.Session, in *Inputs, limits images.Limits, name, dir string) (_ *ofContainerfile, err error) {
	if dir == "-" {
		return nil, cmdline.Usagef("CONTEXT must be a directory; archives on standard input are not supported")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Err: err,
			Hint: "CONTEXT is the directory from which COPY and ADD copy files"}
	}
	if !info.IsDir() {
		return nil, cmdline.Usagef("CONTEXT %q is not a directory", dir)
	}
	b := &ofContainerfile{secrets: in.Secrets.Value()}
	b.o.Context, b.o.Target = dir, in.Target
	if b.o.Args, err = buildArgs(in.Args.Value()); err != nil {
		return nil, err
	}
	if b.o.Contexts, err = cmdline.Pairs("build-context", in.Contexts.Value()); err != nil {
		return nil, err
	}
	// An invalid flag is an error even without RUN; a valid one that has no effect is reported once that is known.
	if err := fullbuild.CheckSecrets(b.secrets); err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassUsage, Err: err}
	}
	b.o.Limits = limits
	b.o.Warn = func(text string) { p.Log.Warn(text) }
	text, name, err := readText(ctx, p, name, dir)
	if err != nil {
		return nil, err
	}
	b.text = text
	if name != "-" {
		b.o.IgnoreBeside = name
	}
	if b.File, err = evaluator.Parse(name, text); err != nil {
		return nil, containerfileError(err)
	}
	return b, nil
}

// buildArgs reads --build-arg. A name without a value takes it from the environment and is skipped if it is not set
// there.
func buildArgs(given []string) (map[string]string, error) {
	args := map[string]string{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if name == "" {
			return nil, cmdline.Usagef("invalid --build-arg value, expected NAME=VALUE")
		}
		if !ok {
			if value, ok = os.LookupEnv(name); !ok {
				continue
			}
		}
		args[name] = value
	}
	return args, nil
}

// readText reads the named file, or the default one in the context.
func readText(ctx context.Context, p *option.Session, name, dir string) ([]byte, string, error) {
	if name == "-" {
		text, err := io.ReadAll(io.LimitReader(p.Stdin, evaluator.MaxText+1))
		return text, name, err
	}
	tries := []string{filepath.Join(dir, "Containerfile"), filepath.Join(dir, "Dockerfile")}
	if name != "" {
		tries = []string{name}
		if !filepath.IsAbs(name) {
			tries = append(tries, filepath.Join(dir, name))
		}
	}
	for _, path := range tries {
		f, err := regularfile.OpenNamed(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, path, err
		}
		text, err := io.ReadAll(io.LimitReader(f, evaluator.MaxText+1))
		return text, path, errors.Join(err, f.Close())
	}
	if name == "" {
		name = tries[0]
	}
	return nil, name, &cmdline.Error{Class: cmdline.ClassLocal, Object: name,
		Err:  fmt.Errorf("%s: %w", name, fs.ErrNotExist),
		Hint: "name the Containerfile with -f FILE, relative to the working directory or to CONTEXT"}
}

func buildContainerfile(ctx context.Context, p *option.Session, o *options, dir string) error {
	limits, err := o.Limits()
	if err != nil {
		return err
	}
	b, err := Read(ctx, p, &o.Inputs, limits, o.file, dir)
	if err != nil {
		return err
	}
	of, err := o.WrittenPlatforms()
	if err != nil {
		return err
	}
	with, err := o.BuildOptions(ctx, p)
	if err != nil {
		return err
	}
	return MakeImage(ctx, p, &o.Image, b, with, of, nil)
}

// seeing is called with the labels and files of the first platform's image before anything is written. An error aborts
// the build.
type seeing func(ctx context.Context, labels map[string]string, files fs.FS) error

// MakeImage builds the image: without RUN natively, else with buildah in programs that include it. see may
// be nil.
func MakeImage(ctx context.Context, p *option.Session, o *option.Image, b *ofContainerfile, with build.Options, of []v1.Platform,
	see seeing) error {
	if done, err := enterStoreOf(b); done || err != nil {
		return err
	}
	err := makeImage(ctx, p, o, b, with, of, see)
	if errors.Is(err, evaluator.ErrRun) && fullbuild.Available {
		return runContainerfile(ctx, p, o, b, with, of, see)
	}
	return err
}

// makeImage evaluates the Containerfile.
func makeImage(ctx context.Context, p *option.Session, o *option.Image, b *ofContainerfile, with build.Options, of []v1.Platform,
	see seeing) (err error) {
	out, within, err := o.Begin(ctx, p, "", &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	image, err := evaluate(within, p, &o.Images, b, with, of, see)
	return out.Finish(ctx, image, err)
}

// enterStoreOf restarts the program as [EnterStore] does if the Containerfile names an image in podman's storage.
func enterStoreOf(b *ofContainerfile) (done bool, err error) {
	named := false
	for line := range bytes.Lines(b.text) {
		line = bytes.TrimSpace(line)
		comment := bytes.HasPrefix(line, []byte("#"))
		named = named || !comment && slices.ContainsFunc(strings.Fields(string(line)), rootless.NamesStoreImage)
	}
	if !named {
		return false, nil
	}
	var stdin []byte
	if b.File.Name == "-" {
		stdin = b.text // standard input has been read already
	}
	status, done := rootless.StartForStore(stdin)
	if done && status != 0 {
		err = &cmdline.ExitStatus{Status: status}
	}
	return done, err
}

// evaluate builds the image of a Containerfile without running commands. see may be nil.
func evaluate(ctx context.Context, p *option.Session, from *option.Images, b *ofContainerfile, with build.Options, of []v1.Platform,
	see seeing) (_ *build.Image, err error) {
	client, err := p.Client(ctx, from)
	if err != nil {
		return nil, err
	}
	eo := b.o
	eo.Dir, eo.Labels, eo.Format, eo.Created = with.Dir, with.Labels, with.Format, with.Created
	eo.Open = func(ctx context.Context, name string, platform v1.Platform) (*images.Image, error) {
		return client.Image(ctx, name, platform)
	}
	start := time.Now()
	e, err := evaluator.New(b.File, eo)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := checkRuns(p, e, of); err != nil {
		return nil, err
	}
	var all []build.Custom
	for i, platform := range of {
		s, err := e.Evaluate(ctx, platform)
		if err != nil {
			return nil, containerfileError(err)
		}
		if err := s.CheckCatalog(ctx); err != nil {
			return nil, err
		}
		if i == 0 && see != nil {
			if err := see(ctx, s.Config.Labels, s.FS(ctx)); err != nil {
				return nil, err
			}
		}
		custom := build.Custom{Platform: s.Platform, BaseName: s.BaseName, Layers: s.Layers, Config: s.ConfigText}
		if s.Base != "" {
			if custom.Base, err = build.NamedBase(client, s.Base); err != nil {
				return nil, err
			}
		}
		all = append(all, custom)
	}
	if len(b.secrets) > 0 {
		p.Log.Warn("--secret has no effect: the file has no RUN instruction")
	}
	image, err := build.Assemble(ctx, all, with)
	if err != nil {
		return nil, err
	}
	p.Log.Info(fmt.Sprintf("assembled %s, %s, %s, in %s", b.File.Name, option.LayerCount(image),
		cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
	return image, nil
}

// checkRuns refuses RUN instructions that are not supported natively, before anything is fetched.
func checkRuns(p *option.Session, e *evaluator.Evaluator, of []v1.Platform) error {
	for _, platform := range of {
		runs, err := e.Runs(platform)
		if err == nil && runs != nil {
			err = runs
		}
		if err != nil {
			return containerfileError(err)
		}
	}
	return nil
}

// containerfileError adds a hint to an error.
func containerfileError(err error) error {
	var problems *evaluator.Problems
	if !errors.As(err, &problems) {
		return err
	}
	e := &cmdline.Error{Class: cmdline.ClassInput, Object: problems.Problems[0].File, Err: err}
	if errors.Is(err, evaluator.ErrRun) {
		e.Hint = "this build supports no RUN command except \"opm serve DIR --cache-dir=DIR --cache-only\"; that of " +
			"\"make build-full\" (linux, cgo) runs any. " +
			"Alternatively run the command before the build and COPY its files"
	}
	// The first problem with a class decides.
	for _, problem := range problems.Problems {
		if class := cmdline.Classify(hint.WithClass(problem.Err)); class == cmdline.ClassNetwork ||
			class == cmdline.ClassIntegrity || class == cmdline.ClassLimit || noRoom(problem.Err) {
			e.Class = class
			break
		}
	}
	return e
}

// noRoom reports whether disk space or other resources of the machine are exhausted.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EMFILE) ||
		errors.Is(err, syscall.ENFILE)
}
