package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// verifyOptions are the flags of "mirror verify".
type verifyOptions struct {
	SetOptions
	option.Images
	option.Answer
	with     mirror.VerifyOptions // has the values that need no reading
	catalogs cli.StringSlice
}

func mirrorVerifyCommand(p *option.Session) *cli.Command {
	o := &verifyOptions{}
	return &cli.Command{
		Name:      "verify",
		Usage:     "check that a mirror or an archive is whole",
		ArgsUsage: "MIRROR",
		Description: `MIRROR is docker://REGISTRY[/PATH] or the archive file://DIR. At a registry the catalogs
are read: those of --config, those that were mirrored from --workspace, and those of --catalog. Every image
that they name must be there with all manifests and blobs, and with --policy, --trusted-key,
--trusted-identity or --require-signed its signature must be accepted. An archive is read whole and compared with its digests. With
--config, what the image set asks for must be there, too. The exit status is 1 if anything is wrong.` +
			program.Examples("bindery mirror verify docker://registry.example.com/olm -c imageset.yaml",
				"bindery mirror verify docker://registry.example.com/olm --workspace mirror -o json",
				"bindery mirror verify file://media"),
		Flags: program.Flags(o.SetOptions.flags(), []cli.Flag{
			&cli.StringFlag{Name: "workspace", Destination: &o.Workspace, Usage: "`DIR` of earlier runs"},
			&cli.StringSliceFlag{Name: "catalog", Destination: &o.catalogs,
				Usage: "`NAME` of a catalog at the mirror, REGISTRY/PATH:TAG; can be repeated"},
			&cli.BoolFlag{Name: "manifests-only", Destination: &o.with.ManifestsOnly, Usage: "do not ask for blobs"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.with.DryRun, Usage: "find out what would be verified, with sizes, from the manifests alone",
				EnvVars: program.Env("dry-run")},
			o.maxNestedPathsFlag(), option.JobsFlag(&o.with.Jobs, "work"),
		}, o.verifyFlags(), []cli.Flag{o.UnsignedFlag(false), o.CrossChannelFlag()}, o.ChartFlags(), o.Answer.Flags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *verifyOptions) run(ctx context.Context, p *option.Session, dest string) error {
	format, err := o.Format()
	if err != nil {
		return err
	}
	v, err := o.verify(ctx, p, dest)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		err = p.PrintValue(format, v)
	} else {
		_, err = p.Stdout.Write([]byte(printable.Text(verificationText(v))))
	}
	if err == nil && !v.Good() {
		return &cmdline.ExitStatus{Status: 1}
	}
	return err
}

func (o *verifyOptions) verify(ctx context.Context, p *option.Session, dest string) (_ *mirror.Verification, err error) {
	progress := p.Task()
	defer progress.Close()
	with := &o.with
	with.Events = func(e mirror.Event) {
		progress.Set(cmdline.State{What: "verifying", Done: e.Images, All: e.AllImages, Units: "images",
			Bytes: e.Bytes, AllBytes: e.AllBytes})
	}
	if dir, ok := strings.CutPrefix(dest, FileScheme); ok {
		for _, name := range []string{"workspace", "catalog", "manifests-only"} {
			if p.Given(name) {
				return nil, cmdline.Usagef("--%s is for a registry", name)
			}
		}
		with.Archive = dir
	} else if err := o.setTarget(dest, true); err != nil {
		return nil, err
	}
	if o.Request.Config != "" {
		if with.Set, err = o.read(ctx, p, imageset.Image); err != nil {
			return nil, err
		}
	}
	if with.Releases, err = o.Releases(ctx, &o.Registry); err != nil {
		return nil, err
	}
	if with.Charts, err = o.charts(ctx); err != nil {
		return nil, err
	}
	for _, name := range o.catalogs.Value() {
		ref, err := imageset.ParseRef(name)
		if err != nil {
			return nil, cmdline.Usagef("invalid --catalog value: %v", err)
		}
		with.Catalogs = append(with.Catalogs, ref)
	}
	if dir := o.workspace(); dir != "" {
		if with.Workspace, err = mirror.ReadWorkspace(dir); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	}
	if with.Archive != "" {
		if err := trustedRoot(ctx, &o.TrustedRoot, with.Archive); err != nil {
			return nil, err
		}
		if o.asksPolicy() {
			of, err := o.ClientOptions(ctx, p)
			if err != nil {
				return nil, err
			}
			of.AnyPlatform = true
			if with.Policy, err = images.NewClient(of); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, with.Policy.Close()) }()
		}
		return with.Verify(ctx)
	}
	with.Target = o.Request.Target
	if with.Render, err = (&option.Bundles{Images: o.Images, Jobs: with.Jobs}).Options(ctx, p); err != nil {
		return nil, err
	}
	if o.asksPolicy() {
		with.Policy = with.Render.Images
	}
	if with.Remote, err = newRemote(ctx, p, &o.Registry, nil, nil); err != nil {
		return nil, err
	}
	v, err := with.Verify(ctx)
	if errors.Is(err, mirror.ErrNoCatalog) {
		return nil, &cmdline.Error{Class: cmdline.ClassUsage, Err: fmt.Errorf("what should be at %s is not known: %w", dest, err),
			Hint: "say it by one of these: -c FILE is the image set that was mirrored, --workspace DIR the directory of its run, and " +
				"--catalog REGISTRY/PATH:TAG a catalog"}
	}
	return v, err
}

// asksPolicy tells whether the flags ask for signatures.
func (o *verifyOptions) asksPolicy() bool {
	return o.Policy != "" || o.RequireSigned || len(o.TrustedKeys.Value())+len(o.TrustedIdentities.Value()) > 0
}

// verificationText is the answer for people.
func verificationText(v *mirror.Verification) string {
	var b strings.Builder
	for _, one := range v.Catalogs {
		if one.Error != "" {
			fmt.Fprintf(&b, "catalog %s: %s\n", one.Name, one.Error)
			continue
		}
		fmt.Fprintf(&b, "catalog %s: %s, %s\n", one.Name, program.Count(one.Packages, "package"), program.Count(one.Bundles, "bundle"))
		for _, text := range one.Missing {
			fmt.Fprintf(&b, "catalog %s: not there: %s\n", one.Name, text)
		}
		if one.Unjudged != "" {
			fmt.Fprintf(&b, "catalog %s: not judged: %s\n", one.Name, one.Unjudged)
		}
	}
	for _, r := range v.Releases {
		switch {
		case r.Error != "":
			fmt.Fprintf(&b, "release %s: %s\n", r.Name, r.Error)
		case r.LeftOut:
			fmt.Fprintf(&b, "release %s: left out, as the other side is to have it\n", r.Name)
		default:
			fmt.Fprintf(&b, "release %s: %s\n", r.Name, program.Count(r.Components, "component"))
		}
	}
	for _, c := range v.Charts {
		if c.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", c.Name, c.Error)
		} else {
			fmt.Fprintf(&b, "%s: %s\n", c.Name, program.Count(c.Images, "image"))
		}
	}
	for _, f := range v.Faults {
		fmt.Fprintf(&b, "%s: %s", f.Image, strings.Join(f.Problems, "; "))
		if len(f.NeededBy) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(f.NeededBy, ", "))
		}
		b.WriteByte('\n')
	}
	if n := len(v.Releases); n > 0 {
		b.WriteString(program.Count(n, "release") + ", ")
	}
	if n := len(v.Charts); n > 0 {
		b.WriteString(program.Count(n, "chart") + ", ")
	}
	fmt.Fprintf(&b, "%s, %s, %s, %s: ", program.Count(len(v.Catalogs), "catalog"), program.Count(v.Images, "image"),
		program.Count(v.Manifests, "manifest"), program.Count(v.Blobs, "blob"))
	switch {
	case v.Good() && v.DryRun:
		b.WriteString("would be verified\n")
		b.WriteString(repositoriesText(v.Repositories))
	case v.Good() && v.LeftOut > 0:
		fmt.Fprintf(&b, "all is there but %d manifests and blobs that the other side is to have\n", v.LeftOut)
	case v.Good():
		b.WriteString("all is there\n")
	default:
		if n := v.WrongReleases(); n > 0 {
			b.WriteString(program.Count(n, "release") + ", ")
		}
		fmt.Fprintf(&b, "%s and %s are wrong\n", program.Count(v.WrongCatalogs(), "catalog"), program.Count(len(v.Faults), "image"))
	}
	return b.String()
}
