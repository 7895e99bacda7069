package ocmirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	mirrorcmd "github.com/operator-bindery/bindery/cmd/internal/mirror"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/policy"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// Name is the name under which the program takes the arguments of oc-mirror v2, ends with its exit statuses and writes
// files under its names.
const Name = "oc-mirror"

// compatible is the version of oc-mirror whose arguments, files and exit statuses these are.
const compatible = "v2.0.0"

// Args translates the arguments of oc-mirror to those of the hidden commands.
func Args(args []string) []string {
	for i, a := range args {
		value := i > 0 && strings.HasPrefix(args[i-1], "-") // perhaps of that flag
		if (a == "--version" || a == "-v") && (!value || isSwitch(args[i-1])) {
			return []string{"oc-mirror-version"}
		}
		if _, known := ocMirrorUnsupported[a]; known && !value {
			return []string{"oc-mirror-unsupported", "--", a}
		}
		switch a {
		case "delete":
			return slices.Concat([]string{"oc-mirror-delete"}, args[:i], args[i+1:])
		case "list":
			rest := slices.Concat(args[:i], args[i+1:])
			for what := range ocMirrorUnsupported {
				if of, ok := strings.CutPrefix(what, "list "); ok && slices.Contains(rest, of) {
					return []string{"oc-mirror-unsupported", "--", what}
				}
			}
			if at := slices.Index(rest, "releases"); at >= 0 {
				return append([]string{"oc-mirror-list-releases"}, slices.Delete(rest, at, at+1)...)
			}
			if at := slices.Index(rest, "operators"); at >= 0 {
				rest = slices.Delete(rest, at, at+1)
			}
			return append([]string{"oc-mirror-list"}, rest...)
		case "version", "completion":
			return append([]string{a}, slices.DeleteFunc(slices.Concat(args[:i], args[i+1:]),
				func(a string) bool { return a == "--v2" })...)
		case "help":
			return []string{"oc-mirror-run", "--help"}
		}
		if !strings.HasPrefix(a, "-") && !value {
			break // an argument, not a command
		}
	}
	return append([]string{"oc-mirror-run"}, args...)
}

// isSwitch tells whether an argument is a flag of oc-mirror with its value, or one that needs none.
func isSwitch(arg string) bool {
	name := strings.TrimLeft(arg, "-")
	if strings.Contains(name, "=") {
		return true
	}
	var o options
	for _, f := range append(o.commonFlags(), o.runFlags()...) {
		if _, is := f.(*cli.BoolFlag); is && slices.Contains(f.Names(), name) {
			return true
		}
	}
	return false
}

// ocMirrorUnsupported are commands of oc-mirror that there are not, with what there is.
var ocMirrorUnsupported = map[string]string{
	"init":     "an image set is written by hand; \"bindery schema image-set\" describes its fields",
	"describe": "\"bindery mirror verify file://DIR\" reads an archive",
	"list updates": "\"bindery mirror plan\" shows the releases on the way between two versions; \"oc-mirror list releases\" lists " +
		"all of a channel",
}

const ocMirrorHelp = "The destination decides:\n\n" +
	"  oc-mirror -c FILE file://DIR                                 from registries to an archive in DIR\n" +
	"  oc-mirror -c FILE --from file://DIR docker://REGISTRY        from the archive in DIR to a registry\n" +
	"  oc-mirror -c FILE --workspace file://DIR docker://REGISTRY   from registries to a registry\n" +
	"  oc-mirror delete --generate -c FILE --workspace file://DIR docker://REGISTRY\n" +
	"  oc-mirror delete --delete-yaml-file FILE docker://REGISTRY\n" +
	"  oc-mirror list operators --catalog NAME [--package NAME [--channel NAME]] | --catalogs --version X.Y\n" +
	"  oc-mirror list releases [--channel NAME | --version X.Y [--channels]] [--filter-by-archs amd64,arm64]\n\n" +
	"The exit status is 0, or 1, or the sum of 2 (images of releases are missing),\n" +
	"4 (images of operators), 8 (additional images) and 16 (images of charts). This is\n" +
	"bindery under the name oc-mirror; \"bindery mirror --help\" has more."

// Commands are the hidden commands behind the arguments of oc-mirror.
func Commands(p *option.Session) []*cli.Command {
	var run, remove, list, listed options
	return []*cli.Command{
		program.Hidden(&cli.Command{Name: "oc-mirror-run", UsageText: "oc-mirror",
			Usage: "mirror releases and operators, with the arguments of oc-mirror v2", Description: ocMirrorHelp,
			ArgsUsage: "DESTINATION", Flags: program.Flags(run.commonFlags(), run.runFlags()),
			Action: p.Action(func(ctx context.Context, args []string) error { return run.mirror(ctx, p, args) })}),
		program.Hidden(&cli.Command{Name: "oc-mirror-delete", UsageText: "oc-mirror delete",
			Usage:     "delete mirrored images, with the arguments of oc-mirror v2",
			ArgsUsage: "DESTINATION", Flags: program.Flags(remove.commonFlags(), remove.deleteFlags()),
			Action: p.Action(func(ctx context.Context, args []string) error { return remove.delete(ctx, p, args) })}),
		program.Hidden(&cli.Command{Name: "oc-mirror-unsupported", UsageText: "oc-mirror [flags] DESTINATION",
			Usage: "say what is not supported",
			Action: program.Exactly(1, p.Action(func(_ context.Context, args []string) error {
				return cmdline.Usagef("%q is not supported: %s", args[0], ocMirrorUnsupported[args[0]])
			}))}),
		program.Hidden(&cli.Command{Name: "oc-mirror-version", UsageText: "oc-mirror --version",
			Usage: "print the version of oc-mirror that the arguments are those of",
			Action: program.Exactly(0, p.Action(func(context.Context, []string) error {
				_, err := fmt.Fprintf(p.Stdout, "oc-mirror version %s (bindery %s)\n", compatible, version.Release())
				return err
			}))}),
		program.Hidden(&cli.Command{Name: "oc-mirror-list", UsageText: "oc-mirror list operators",
			Usage:  "list operators, with the arguments of oc-mirror v2",
			Flags:  program.Flags(list.commonFlags(), list.listFlags()),
			Action: p.Action(func(ctx context.Context, args []string) error { return list.list(ctx, p, args) })}),
		program.Hidden(&cli.Command{Name: "oc-mirror-list-releases", UsageText: "oc-mirror list releases",
			Usage:  "list releases of OpenShift, with the arguments of oc-mirror v2",
			Flags:  program.Flags(listed.commonFlags(), listed.listReleasesFlags()),
			Action: p.Action(func(ctx context.Context, args []string) error { return listed.listReleases(ctx, p, args) })}),
	}
}

// withStatus gives an error the exit status of oc-mirror: bits for images of releases (2), of operators (4)
// additional images (8) and images of charts (16), 1 for all else.
func withStatus(err error) error {
	if err == nil {
		return nil
	}
	status := 0
	var incomplete *mirror.IncompleteError
	var collect *mirror.CollectError
	var lack *mirror.LackError
	switch {
	case errors.As(err, &lack):
		status = 4
	case errors.As(err, &incomplete):
		// oc-mirror says nothing of packages and channels that catalogs do not have.
		if incomplete.OnlyNames() {
			return nil
		}
		if incomplete.LacksReleases() {
			status |= 2
		}
		if incomplete.Operators+incomplete.LeftOut+len(incomplete.Unpublished) > 0 {
			status |= 4
		}
		if incomplete.Additional > 0 {
			status |= 8
		}
		if incomplete.LacksCharts() {
			status |= 16
		}
	case errors.As(err, &collect):
		if collect.Releases > 0 {
			status |= 2
		}
		if collect.Operators > 0 {
			status |= 4
		}
		if collect.Additional > 0 {
			status |= 8
		}
		if collect.Charts > 0 {
			status |= 16
		}
	}
	return &cmdline.ExitStatus{Status: max(status, 1), Err: err}
}

// begin sets the level of messages, and checks the flags of all commands.
func (o *options) begin(p *option.Session) error {
	level, ok := map[string]slog.Level{"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug,
		"error": slog.LevelError}[o.logLevel]
	if !ok {
		return cmdline.Usagef("%q: invalid log-level, it should be one of (info,debug,trace,error)", o.logLevel)
	}
	p.Log = p.NewLogger(p.Stderr, p.LogFormat(""), level)
	return o.checkFlags(p)
}

// direction reads the arguments as oc-mirror does, with its sentences.
func (o *options) direction(p *option.Session, args []string) error {
	if o.Request.Config == "" {
		return cmdline.Usagef("use the --config flag it is mandatory")
	}
	if len(args) < 1 {
		return cmdline.Usagef("requires at least 1 arg(s), only received 0")
	}
	dest, from, workspace := args[0], o.From, o.Workspace
	for name, value := range map[string]string{"from": from, "workspace": workspace} {
		if value != "" && !strings.HasPrefix(value, mirrorcmd.FileScheme) {
			return cmdline.Usagef("when --%s is used, it must have file:// prefix", name)
		}
	}
	switch {
	case strings.HasPrefix(dest, mirrorcmd.FileScheme) && from != "":
		return cmdline.Usagef("when destination is file://, mirrorToDisk workflow is assumed, and the --from argument " +
			"is not needed")
	case strings.HasPrefix(dest, mirrorcmd.FileScheme) && workspace != "":
		return cmdline.Usagef("when destination is file://, mirrorToDisk workflow is assumed, and the --workspace " +
			"argument is not needed")
	case !strings.HasPrefix(dest, mirrorcmd.FileScheme) && !strings.HasPrefix(dest, "docker://"):
		return cmdline.Usagef("destination must have either file:// (mirror to disk) or docker:// (diskToMirror) " +
			"protocol prefixes")
	case strings.HasPrefix(dest, "docker://") && from == "" && workspace == "":
		return cmdline.Usagef("when destination is docker://, either --from (assumes disk to mirror workflow) or " +
			"--workspace (assumes mirror to mirror workflow) need to be provided")
	case from != "" && workspace != "":
		return cmdline.Usagef("when destination is docker://, --from (assumes disk to mirror workflow) and " +
			"--workspace (assumes mirror to mirror workflow) cannot be used together")
	case o.Request.DryRun && o.Request.ManifestLists:
		return cmdline.Usagef("--dry-run and --dry-run-manifest-lists cannot be used together")
	}
	if o.since != "" {
		since, err := time.Parse(time.DateOnly, o.since)
		if err != nil {
			return cmdline.Usagef("--since flag needs to be in format yyyy-MM-dd")
		}
		if strings.HasPrefix(dest, mirrorcmd.FileScheme) {
			o.Request.Since = since
		}
	}
	if p.Given("cache-dir") && os.Getenv("OC_MIRROR_CACHE") != "" {
		return cmdline.Usagef("either OC_MIRROR_CACHE or --cache-dir can be used but not both")
	}
	switch {
	case o.Request.ParallelImages < 1, o.Request.ParallelImages > 10:
		return cmdline.Usagef("the flag parallel-images must be between the range 1 to 10")
	case o.Request.ParallelLayers < 1, o.Request.ParallelLayers > 10:
		return cmdline.Usagef("the flag parallel-layers must be between the range 1 to 10")
	}
	return o.Direction(dest)
}

// access is how [program.Source] or [program.Destination] is reached.
func (o *options) access(p *option.Session, end string) registries.Options {
	with, certificates, verify := o.SourceAccess(p), o.srcCertDir, o.srcTLSVerify
	if end == program.Destination {
		with, certificates, verify = o.DestAccess(p), o.destCertDir, o.destTLSVerify
	}
	with.Registry.CertDir = certificates
	if skip := !verify; skip {
		with.Registry.SkipTLSVerify, with.Registry.PlainHTTP = &skip, true
	}
	return with
}

func (o *options) mirror(ctx context.Context, p *option.Session, args []string) (err error) {
	if err := o.begin(p); err != nil {
		return err
	}
	if err := o.direction(p, args); err != nil {
		return err
	}
	if len(args) > 1 {
		return cmdline.Usagef("requires 1 arg, received %d", len(args))
	}
	with := &o.Request
	with.DryRun = with.DryRun || with.ManifestLists
	with.AllCatalogs, with.Medium.Form, with.Sparse = true, medium.OCMirror, store.SparseKeep
	if !o.removeSignatures {
		with.With = referrers.Kinds{Tags: true, Referrers: true}
	}
	if err := with.Check(); err != nil {
		return err
	}
	if with.Now, err = mirrorcmd.Time(time.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	if *with, err = o.Prepare(ctx, p, imageset.Image, &o.Registry); err != nil {
		if imageset.OnlyTagless(err) {
			return &cmdline.ExitStatus{Status: 8, Err: err}
		} else if imageset.OnlyCharts(err) {
			return &cmdline.ExitStatus{Status: 16, Err: err}
		}
		return err
	}
	with.Charts.Compat = true
	if !o.srcTLSVerify {
		if err := mirrorcmd.SkipChartCertificates(ctx, &o.Registry, with); err != nil {
			return err
		}
	}
	if err := o.createClients(ctx, p, with, program.Source); err != nil {
		return err
	}
	if with.Workspace, err = o.OpenWorkspace("\"bindery mirror run --from\" takes --workspace DIR, which keeps the files of " +
		"runs in DIR, and not beside the archive"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.Workspace.Close()) }()
	stop, err := openLogFile(p, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if with.Mode != mirror.ToDisk {
		uploads, err := with.Workspace.Uploads()
		if err != nil {
			return err
		}
		if with.Remote, err = o.newRemote(ctx, p, program.Destination, uploads); err != nil {
			return err
		}
	}
	var incomplete *mirror.IncompleteError
	account, runErr := mirrorcmd.RunMirror(ctx, p, *with)
	err = withStatus(runErr)
	if account == nil {
		return err
	}
	printResults(p, account)
	if with.Mode == mirror.ToDisk && len(account.Archives) > 0 {
		p.Log.Info(mirrorcmd.CarryLine(mirrorcmd.SegmentNames(account)+" in "+with.Archive, with.Config,
			"oc-mirror --v2 -c "+filepath.Base(with.Config)+" --from file://DIR docker://REGISTRY[/PATH]"))
	}
	var status *cmdline.ExitStatus
	switch _ = errors.As(err, &status); {
	case !errors.As(runErr, &incomplete):
		if err != nil {
			mirrorcmd.WarnUndelivered(p, account, runErr)
		}
	case status != nil:
		status.Err = &cmdline.Error{Class: cmdline.Classify(err), Err: status.Err, Hint: mirrorcmd.CauseHint(p, incomplete),
			List: mirrorcmd.Undelivered(account)}
	default:
		for line := range mirrorcmd.Undelivered(account) {
			p.Log.Warn(line)
		}
	}
	if file := o.account; file != "" {
		if status != nil {
			account.Exit = status.Status
		}
		if failed := p.WriteAccount("account", file, account); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}

// createClients creates the clients that read, with the flags about one end.
func (o *options) createClients(ctx context.Context, p *option.Session, with *mirror.Options, end string) error {
	client := images.ClientOptions{Options: o.access(p, end), Policy: policy.Read, Transports: program.Transports,
		AnyPlatform: true, PolicyFile: o.Policy}
	if !o.securePolicy && client.PolicyFile == "" {
		client.NoPolicy = true
	}
	if with.Mode == mirror.FromDisk {
		client.NoPolicy, client.PolicyFile = true, ""
	}
	dir, manifests, err := mirrorcmd.WorkDirectory(ctx, p)
	if err != nil {
		return err
	}
	client.Cache = manifests
	if with.Images, err = images.NewClient(client); err != nil {
		return err
	}
	p.Use(with.Images)
	if with.Render, err = (&option.Bundles{Images: o.Images}).Options(ctx, p); err != nil || with.Mode == "" {
		return err
	}
	with.Render.Opened = nil // the run says which catalogs it reads
	spec, err := mirrorcmd.CatalogSpec(ctx, p, &o.Image, with.CatalogBase)
	if err != nil {
		return err
	}
	spec.Registry = client.Registry
	spec.Build.Dir = dir
	with.Spec = *spec
	return nil
}

// newRemote returns a client for one end, which is closed when the command ends.
func (o *options) newRemote(ctx context.Context, p *option.Session, end string, uploads registries.Uploads) (
	*registries.Client, error) {
	with := o.access(p, end)
	with.Uploads = uploads
	remote, err := registries.New(ctx, with)
	if err == nil {
		p.AtEnd = append(p.AtEnd, func(bool) error { return remote.Close() })
	}
	return remote, err
}

// openLogFile also writes messages to the file that oc-mirror writes them to.
func openLogFile(p *option.Session, o *mirror.Options) (stop func() error, err error) {
	f, err := o.Workspace.Create("logs", "oc-mirror-"+o.Now.Format("20060102_150405")+".log")
	if err != nil {
		return nil, err
	}
	before := p.Log
	p.Log = p.NewLogger(io.MultiWriter(p.Stderr, f), p.LogFormat(""), slog.LevelInfo)
	o.Log = p.Log
	return func() error { p.Log = before; return f.Close() }, nil
}

// printResults prints the counts as oc-mirror does.
func printResults(p *option.Session, a *mirror.Account) {
	for _, kind := range []struct {
		name string
		of   []mirror.Kind
	}{{"release", []mirror.Kind{mirror.Release, mirror.ReleaseContent}}, {"operator", []mirror.Kind{mirror.Related, mirror.Bundle}}, {"additional", []mirror.Kind{mirror.Additional}}, {"helm", []mirror.Kind{mirror.ChartImage}}} {
		there, asked := a.Count(kind.of...)
		if kind.name == "operator" {
			for _, c := range a.Catalogs {
				asked++
				if c.Published {
					there++
				}
			}
		}
		if asked > 0 && !a.DryRun {
			fmt.Fprintf(p.Stdout, "%d / %d %s images mirrored successfully\n", there, asked, kind.name)
		}
	}
	for _, file := range append(slices.Clone(a.Resources), a.Files...) {
		fmt.Fprintln(p.Stdout, file)
	}
}
