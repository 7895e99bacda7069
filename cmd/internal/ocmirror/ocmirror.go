package ocmirror

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
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
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// Name is the name under which the program takes the arguments of oc-mirror v2 and gives its exit statuses and
// files (MIRROR sections 0, 2 and 13).
const Name = "oc-mirror"

// Args translates the arguments of oc-mirror to those of the hidden commands.
func Args(args []string) []string {
	for i, a := range args {
		value := i > 0 && strings.HasPrefix(args[i-1], "-") // perhaps of that flag
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

// ocMirrorUnsupported are commands of oc-mirror that there are not, with what there is.
var ocMirrorUnsupported = map[string]string{
	"init":          "an image set is written by hand; \"bindery schema image-set\" describes its fields",
	"describe":      "\"bindery mirror verify file://DIR\" reads an archive",
	"list releases": "images of releases are not mirrored; \"oc-mirror list operators\" lists catalogs",
	"list updates":  "images of releases are not mirrored; \"oc-mirror list operators\" lists catalogs",
	"--version":     "\"oc-mirror version\" prints the version",
}

const ocMirrorHelp = "The destination decides:\n\n" +
	"  oc-mirror -c FILE file://DIR                                 from registries to an archive in DIR\n" +
	"  oc-mirror -c FILE --from file://DIR docker://REGISTRY        from the archive in DIR to a registry\n" +
	"  oc-mirror -c FILE --workspace file://DIR docker://REGISTRY   from registries to a registry\n" +
	"  oc-mirror delete --generate -c FILE --workspace file://DIR docker://REGISTRY\n" +
	"  oc-mirror delete --delete-yaml-file FILE docker://REGISTRY\n" +
	"  oc-mirror list operators --catalog NAME [--package NAME [--channel NAME]]\n\n" +
	"The exit status is 0, or 1, or the sum of 4 (images of operators lack) and 8 (additional images lack). This is\n" +
	"bindery under the name oc-mirror; \"bindery mirror --help\" has more."

// Commands are the hidden commands behind the arguments of oc-mirror.
func Commands(p *option.Session) []*cli.Command {
	return []*cli.Command{
		program.Hidden(&cli.Command{Name: "oc-mirror-run", UsageText: "oc-mirror",
			Usage: "mirror operators, with the arguments of oc-mirror v2", Description: ocMirrorHelp,
			ArgsUsage: "DESTINATION", Flags: program.Flags(ocMirrorCommonFlags(), ocMirrorRunFlags()), Action: func(c *cli.Context) error { return ocMirrorRun(p, c) }}),
		program.Hidden(&cli.Command{Name: "oc-mirror-delete", UsageText: "oc-mirror delete",
			Usage:     "delete mirrored images, with the arguments of oc-mirror v2",
			ArgsUsage: "DESTINATION", Flags: program.Flags(ocMirrorCommonFlags(), ocMirrorDeleteFlags()),
			Action: func(c *cli.Context) error { return ocMirrorDelete(p, c) }}),
		program.Hidden(&cli.Command{Name: "oc-mirror-unsupported", UsageText: "oc-mirror [flags] DESTINATION",
			Usage: "say what is not supported",
			Action: func(c *cli.Context) error {
				what := c.Args().First()
				return cmdline.Usagef("%q is not supported: %s", what, ocMirrorUnsupported[what])
			}}),
		program.Hidden(&cli.Command{Name: "oc-mirror-list", UsageText: "oc-mirror list operators",
			Usage: "list operators, with the arguments of oc-mirror v2",
			Flags: program.Flags(ocMirrorCommonFlags(), ocMirrorListFlags()), Action: func(c *cli.Context) error { return ocMirrorList(p, c) }}),
	}
}

// ocMirrorStatus gives an error the exit status of oc-mirror: bits for images of operators (4) and additional images
// (8), 1 for all else.
func ocMirrorStatus(err error) error {
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
		if incomplete.Operators+incomplete.LeftOut+len(incomplete.Unpublished) > 0 {
			status |= 4
		}
		if incomplete.Additional > 0 {
			status |= 8
		}
	case errors.As(err, &collect):
		if collect.Operators > 0 {
			status |= 4
		}
		if collect.Additional > 0 {
			status |= 8
		}
	}
	return &cmdline.ExitStatus{Status: max(status, 1), Err: err}
}

// ocMirrorLog sets the level of messages.
func ocMirrorLog(p *option.Session, c *cli.Context) error {
	level, ok := map[string]slog.Level{"info": slog.LevelInfo, "debug": slog.LevelDebug, "trace": slog.LevelDebug,
		"error": slog.LevelError}[c.String("log-level")]
	if !ok {
		return cmdline.Usagef("%q: invalid log-level, it should be one of (info,debug,trace,error)",
			c.String("log-level"))
	}
	if c.Bool("v1") {
		return cmdline.Usagef("--v1 is not supported: this is oc-mirror v2")
	}
	p.Log = p.NewLogger(p.Stderr, p.LogFormat(""), level)
	for _, name := range ocMirrorCredentials {
		if c.IsSet(name) {
			p.Log.Warn("--" + name + " is not used: credentials are read from --authfile, or from the files of podman " +
				"and docker")
		}
	}
	return nil
}

// ocMirrorDestination reads the arguments as oc-mirror does, with its sentences.
func ocMirrorDestination(c *cli.Context) (a mirrorcmd.MirrorArgs, err error) {
	if c.String("config") == "" {
		return a, cmdline.Usagef("use the --config flag it is mandatory")
	}
	if c.NArg() < 1 {
		return a, cmdline.Usagef("requires at least 1 arg(s), only received 0")
	}
	dest, from, workspace := c.Args().First(), c.String("from"), c.String("workspace")
	for name, value := range map[string]string{"from": from, "workspace": workspace} {
		if value != "" && !strings.HasPrefix(value, mirrorcmd.FileScheme) {
			return a, cmdline.Usagef("when --%s is used, it must have file:// prefix", name)
		}
	}
	switch {
	case strings.HasPrefix(dest, mirrorcmd.FileScheme) && from != "":
		return a,
			cmdline.Usagef("when destination is file://, mirrorToDisk workflow is assumed, and the --from argument " +
				"is not needed")
	case strings.HasPrefix(dest, mirrorcmd.FileScheme) && workspace != "":
		return a, cmdline.Usagef("when destination is file://, mirrorToDisk workflow is assumed, and the --workspace " +
			"argument is not needed")
	case !strings.HasPrefix(dest, mirrorcmd.FileScheme) && !strings.HasPrefix(dest, "docker://"):
		return a, cmdline.Usagef("destination must have either file:// (mirror to disk) or docker:// (diskToMirror) " +
			"protocol prefixes")
	case strings.HasPrefix(dest, "docker://") && from == "" && workspace == "":
		return a, cmdline.Usagef("when destination is docker://, either --from (assumes disk to mirror workflow) or " +
			"--workspace (assumes mirror to mirror workflow) need to be provided")
	case from != "" && workspace != "":
		return a, cmdline.Usagef("when destination is docker://, --from (assumes disk to mirror workflow) and " +
			"--workspace (assumes mirror to mirror workflow) cannot be used together")
	case c.Bool("dry-run") && c.Bool("dry-run-manifest-lists"):
		return a, cmdline.Usagef("--dry-run and --dry-run-manifest-lists cannot be used together")
	}
	if text := c.String("since"); text != "" {
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return a, cmdline.Usagef("--since flag needs to be in format yyyy-MM-dd")
		}
	}
	if c.IsSet("cache-dir") && os.Getenv("OC_MIRROR_CACHE") != "" {
		return a, cmdline.Usagef("either OC_MIRROR_CACHE or --cache-dir can be used but not both")
	}
	for _, name := range []string{"parallel-images", "parallel-layers"} {
		if n := c.Uint(name); n < 1 || n > 10 {
			return a, cmdline.Usagef("the flag %s must be between the range 1 to 10", name)
		}
	}
	return mirrorcmd.ReadMirrorArgs(c)
}

// ocMirrorRegistry is the configuration of one end.
func ocMirrorRegistry(c *cli.Context, side string) registries.Config {
	r := registries.Config{AuthFile: c.String("authfile"), RegistriesDir: c.String("registries.d"),
		CertDir: c.String(side + "-cert-dir"), UserAgent: "bindery/" + strings.TrimPrefix(c.App.Version, "v")}
	if !c.Bool(side + "-tls-verify") {
		skip := true
		r.SkipTLSVerify, r.PlainHTTP = &skip, true
	}
	return r.Env(os.Getenv)
}

func ocMirrorRun(p *option.Session, c *cli.Context) (err error) {
	if err := ocMirrorLog(p, c); err != nil {
		return err
	}
	a, err := ocMirrorDestination(c)
	if err != nil {
		return err
	}
	if c.Args().Len() > 1 {
		return cmdline.Usagef("requires 1 arg, received %d", c.NArg())
	}
	o := mirror.Options{Mode: a.Mode, Target: a.Target, Archive: a.Archive, Config: c.String("config"),
		OnMissing: mirror.OnMissing(c.String("on-missing")), Base: mirror.Base(c.String("catalog-base")),
		Jobs: int(c.Uint("parallel-images")), Layers: int(c.Uint("parallel-layers")),
		Timeout: c.Duration("image-timeout"),
		DryRun:  c.Bool("dry-run") || c.Bool("dry-run-manifest-lists"), ManifestLists: c.Bool("dry-run-manifest-lists"),
		AllCatalogs: true, Compat: c.String("compat") != "", Sparse: store.SparseKeep, Log: p.Log,
		Medium: medium.Options{Form: medium.OCMirror, Strict: c.Bool("strict-archive")}}
	if !c.Bool("remove-signatures") {
		o.With = referrers.Kinds{Tags: true, Referrers: true}
	}
	if o.Now, err = mirrorcmd.MirrorTime(p, time.Now().UTC().Truncate(time.Second)); err != nil {
		return err
	}
	if text := c.String("since"); text != "" && o.Mode == mirror.ToDisk {
		o.Since, _ = time.Parse(time.DateOnly, text) // it was checked
	}
	if o.Set, err = mirrorcmd.ImageSet(p, c, imageset.Image); err != nil {
		var wrong *imageset.Error
		if errors.As(err, &wrong) && wrong.OnlyTagless() {
			return &cmdline.ExitStatus{Status: 8, Err: err}
		}
		return err
	}
	if o.Filter, err = mirrorcmd.FilterPolicy(p, c); err != nil {
		return err
	}
	if err := ocMirrorClients(p, c, &o, "src"); err != nil {
		return err
	}
	if o.Workspace, err = mirrorcmd.OpenWorkspace(c, a); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Workspace.Close()) }()
	stop, err := ocMirrorLogFile(p, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if o.Mode != mirror.ToDisk {
		uploads, err := o.Workspace.Uploads()
		if err != nil {
			return err
		}
		if o.Remote, err = ocMirrorRemote(p, c, uploads); err != nil {
			return err
		}
	}
	var incomplete *mirror.IncompleteError
	account, runErr := mirrorcmd.RunMirror(p, c.Context, o)
	err = ocMirrorStatus(runErr)
	if account == nil {
		return err
	}
	ocMirrorResults(p, account)
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
		for _, line := range mirrorcmd.Undelivered(account) {
			p.Log.Warn(line)
		}
	}
	if file := c.String("account"); file != "" {
		if status != nil {
			account.Exit = status.Status
		}
		if failed := p.WriteAccount("account", file, account); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return err
}

// ocMirrorClients creates the clients that read, with the flags about one side.
func ocMirrorClients(p *option.Session, c *cli.Context, o *mirror.Options, side string) error {
	client := images.ClientOptions{Policy: policy.Read, Transports: program.Transports,
		Registry: ocMirrorRegistry(c, side), Retries: c.Int("retry-times"),
		AnyPlatform: true, Events: p.WarnEvent, PolicyFile: c.String("policy")}
	if !c.Bool("secure-policy") && client.PolicyFile == "" {
		client.NoPolicy = true
	}
	if o.Mode == mirror.FromDisk {
		client.NoPolicy, client.PolicyFile = true, ""
	}
	dir, manifests, err := mirrorcmd.MirrorWork(p, c)
	if err != nil {
		return err
	}
	client.Cache = manifests
	if o.Images, err = images.NewClient(client); err != nil {
		return err
	}
	p.Images = o.Images
	p.AtEnd = append(p.AtEnd, func(bool) error { return o.Images.Close() })
	if o.Render, err = p.BundleOptions(c); err != nil || o.Mode == "" {
		return err
	}
	o.Render.Opened = nil // the run says which catalogs it reads
	spec, err := mirrorcmd.MirrorSpec(p, c, o.Base)
	if err != nil {
		return err
	}
	spec.Registry = client.Registry
	spec.Build.Dir = dir
	o.Spec = *spec
	return nil
}

func ocMirrorRemote(p *option.Session, c *cli.Context, uploads registries.Uploads) (*registries.Client, error) {
	remote, err := registries.New(c.Context, registries.Options{Registry: ocMirrorRegistry(c, "dest"),
		Retries: c.Int("retry-times"), Backoff: c.Duration("retry-delay"), Uploads: uploads, Events: p.WarnEvent})
	if err == nil {
		p.AtEnd = append(p.AtEnd, func(bool) error { return remote.Close() })
	}
	return remote, err
}

// ocMirrorLogFile also writes messages to the file that oc-mirror writes them to.
func ocMirrorLogFile(p *option.Session, o *mirror.Options) (stop func() error, err error) {
	f, err := o.Workspace.Create("logs", "oc-mirror-"+o.Now.Format("20060102_150405")+".log")
	if err != nil {
		return nil, err
	}
	before := p.Log
	p.Log = p.NewLogger(io.MultiWriter(p.Stderr, f), p.LogFormat(""), slog.LevelInfo)
	o.Log = p.Log
	return func() error { p.Log = before; return f.Close() }, nil
}

// ocMirrorResults prints the counts as oc-mirror does.
func ocMirrorResults(p *option.Session, a *mirror.Account) {
	for _, kind := range []struct {
		name string
		of   []mirror.Kind
	}{{"operator", []mirror.Kind{mirror.Related, mirror.Bundle}}, {"additional", []mirror.Kind{mirror.Additional}}} {
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
