package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/resolve"
	"github.com/operator-bindery/bindery/render"
)

// resolveOptions are the flags and arguments of "resolve".
type resolveOptions struct {
	option.Reading
	catalogs                                []string
	pkg                                     string
	version, installed, enforcement, output string
	channels, gates, priorities             cli.StringSlice
	selfCertified, path, v0, pull           bool
}

// ResolveCommand returns the command "resolve".
func ResolveCommand(p *option.Session) *cli.Command {
	const request = "what is requested"
	o := &resolveOptions{}
	return &cli.Command{
		Name:      "resolve",
		Usage:     "say which bundle OLM installs, and to which one it upgrades",
		ArgsUsage: "CATALOG... PACKAGE",
		Description: option.CatalogHelp + `

Answers as the resolver of OLM v1 does, with its messages, and warns of what "check --profile olmv1" finds in
the package and in the bundles of the answer. The catalogs need not be valid. Several catalogs are those of
one cluster. The conditions also hold for the upgrades that follow. With --v0, the steps that OLM v0 takes in
a channel instead, up to its head, and the entries from which it does not get there. An upgrade from an
installed bundle is judged by the CustomResourceDefinitions of both, if the catalog has their manifests or
with --pull, and so is each that follows. The exit status is 1 if an API server refuses the request, if no
bundle is resolved, if OLM v1 refuses the one that is or the upgrade to it, or if an installed bundle has no
way to the head.` +
			program.Examples("bindery resolve catalog etcd", "bindery resolve catalog etcd --installed 0.9.0 --path",
				"bindery resolve catalog etcd --installed 0.9.0 --crd-upgrade-safety None",
				"bindery resolve index.db etcd --v0 --channel singlenamespace-alpha --installed etcdoperator.v0.9.0",
				"bindery resolve catalog etcd --version 0.9.x -o json"),
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "version", Destination: &o.version, Category: request,
				Usage: "constraint `RANGE` of the version (1.2.3, \">=1 <2\", ~1.2, 1.x)"},
			&cli.StringSliceFlag{Name: "channel", Destination: &o.channels, Aliases: []string{"c"}, Category: request,
				Usage: "only bundles of `CHANNEL`; can be repeated"},
			&cli.StringFlag{Name: "installed", Destination: &o.installed, Category: request,
				Usage: "what is installed: the `BUNDLE` or version of a catalog, or BUNDLE=VERSION of one that no " +
					"catalog has"},
			&cli.BoolFlag{Name: "self-certified", Destination: &o.selfCertified, Category: request,
				Usage: "any bundle may follow the installed one (upgradeConstraintPolicy: SelfCertified)"},
			&cli.StringSliceFlag{Name: "gate", Destination: &o.gates, Category: request,
				Usage: "turn on the feature gate `NAME` (" + strings.Join(checkGates(), "|") + "); can be repeated"},
			&cli.StringSliceFlag{Name: "priority", Destination: &o.priorities, Category: request,
				Usage: "spec.priority of a catalog, as `CATALOG=NUMBER`; can be repeated"},
			&cli.BoolFlag{Name: "path", Destination: &o.path, Category: "answer",
				Usage: "print all upgrades that follow one another, not the next one only"},
			&cli.BoolFlag{Name: "v0", Destination: &o.v0, Category: "answer",
				Usage: "answer for OLM v0, whose Subscription has one channel"},
			program.InCategory("answer", program.AnswerFlag(&o.output)),
		}, o.safetyFlags(request), o.Reading.Flags()),
		Action: program.AtLeast(2, p.Action(func(ctx context.Context, args []string) error {
			o.catalogs, o.pkg = option.CatalogsAndPackage(args)
			return o.run(ctx, p)
		})),
	}
}

const releaseGate = "BundleReleaseSupport"

func (o *resolveOptions) run(ctx context.Context, p *option.Session) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	if err := p.Filled("version", "installed", "output", "channel", "gate", "priority"); err != nil {
		return err
	}
	if o.pkg == "" {
		return cmdline.Usagef("the name of the package is empty")
	}
	if err := o.checkSafety(); err != nil {
		return err
	}
	if !o.v0 {
		if err := checkRequest(o.request()); err != nil {
			return err
		}
	}
	catalogs, err := o.open(ctx, p)
	if err != nil {
		return err
	}
	if o.v0 {
		return o.resolveV0(ctx, p, catalogs, format)
	}
	q := o.request()
	if q.SelfCertified && o.installed == "" {
		return cmdline.Usagef("--self-certified needs --installed: without it any bundle may be chosen")
	}
	settings := manifests.Settings{Certs: manifests.CertManager}
	for _, gate := range o.gates.Value() {
		switch {
		case gate == releaseGate:
			q.Gates.BundleReleaseSupport = true
		case !slices.Contains(checkGates(), gate):
			return cmdline.Usagef("invalid --gate value %q, expected (%s)", gate, strings.Join(checkGates(), "|"))
		default:
			settings.Gates = append(settings.Gates, manifests.SingleOwnNamespace)
		}
	}
	warnings, err := checkPackages(ctx, catalogs, &q, settings)
	if err != nil {
		return err
	}
	r, err := resolve.NewResolver(ctx, catalogs, q.Package, q.Gates)
	if err != nil {
		return p.OpmMessage(err)
	}
	if o.installed != "" {
		if q.Installed, err = installedBundle(o.installed, r.Installed); err != nil {
			return err
		}
	}
	a, err := r.Resolve(q)
	if err != nil {
		logWarnings(p, warnings.about(q.Installed))
		return unresolved(&q, r, err)
	}
	out := newResolved(o.path, r, &q, a)
	touched := out.bundles()
	if q.Installed != nil {
		touched = append(touched, q.Installed.Name)
	}
	if err := o.checkTouched(ctx, p, warnings, settings, touched); err != nil {
		return err
	}
	out.Warnings = warnings.about(q.Installed, out.bundles()...)
	logWarnings(p, out.Warnings)
	if err := o.judge(ctx, p, &q, out, settings); err != nil {
		return err
	}
	return printResolved(ctx, p, format, out)
}

// request returns what a ClusterExtension asks for.
func (o *resolveOptions) request() resolve.Request {
	return resolve.Request{Package: o.pkg, Channels: o.channels.Value(), Version: o.version, SelfCertified: o.selfCertified}
}

// open opens the catalogs, each under its reference.
func (o *resolveOptions) open(ctx context.Context, p *option.Session) ([]resolve.Catalog, error) {
	priorities := map[string]int32{}
	for _, text := range o.priorities.Value() {
		n := strings.LastIndexByte(text, '=')
		if n < 0 || !slices.Contains(o.catalogs, text[:n]) {
			return nil, cmdline.Usagef("invalid --priority value %q, expected CATALOG=NUMBER with one of the catalogs",
				text)
		}
		number, err := strconv.ParseInt(text[n+1:], 10, 32)
		if err != nil {
			return nil, cmdline.Usagef("invalid --priority value %q, expected a number of 32 bits", text)
		}
		priorities[text[:n]] = int32(number)
	}
	with, err := o.Options(ctx, p, o.catalogs...)
	if err != nil {
		return nil, err
	}
	// The rules of OLM v1 look at manifests, too.
	with.Allow, with.Skeleton, with.Packages = option.CatalogKinds(), o.v0, []string{o.pkg}
	with.Schemaless = true // catalogd stores them
	var catalogs []resolve.Catalog
	for i, ref := range o.catalogs {
		if slices.Contains(o.catalogs[:i], ref) {
			return nil, cmdline.Usagef("the catalog %q is named twice", ref)
		}
		blobs, err := with.Render(ctx, ref)
		if errors.Is(err, render.ErrNotAllowed) {
			return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
				Err: fmt.Errorf("%q is a bundle, not a catalog", ref), Hint: "\"bindery check\" says whether OLM v1 " +
					"installs a bundle"}
		}
		if err != nil {
			return nil, p.OpmMessage(err)
		}
		catalogs = append(catalogs, resolve.Catalog{Name: ref, Priority: priorities[ref], Blobs: blobs})
	}
	return catalogs, nil
}

// installedBundle reads the value of --installed. known finds a bundle of a catalog by name or version.
func installedBundle(text string, known func(string) (*resolve.Installed, bool)) (*resolve.Installed, error) {
	if i, ok := known(text); ok {
		return i, nil
	}
	if name, version, ok := strings.Cut(text, "="); ok && name != "" && version != "" {
		return &resolve.Installed{Name: name, Version: version}, nil
	}
	return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: text,
		Hint: "name its version as well, if it is no bundle of the catalogs: --installed BUNDLE=VERSION",
		Err:  fmt.Errorf("--installed %s: no catalog has a bundle of this name or version", text)}
}

// resolves reports whether a request has an answer without one of its conditions.
func resolves(r *resolve.Resolver, q *resolve.Request, without func(*resolve.Request)) bool {
	other := *q
	without(&other)
	_, err := r.Resolve(other)
	return err == nil
}

// shortened returns the first names of a list, separated by commas, and the number of the others.
func shortened(names []string, most int) string {
	if n := len(names); n > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(names, ", ")
}

// unresolved adds advice to the resolver's message.
func unresolved(q *resolve.Request, r *resolve.Resolver, err error) error {
	e := &cmdline.Error{Class: cmdline.ClassInput, Object: q.Package, Err: err}
	var none *resolve.NotFoundError
	var dependency *resolve.DependencyError
	switch {
	case errors.As(err, &none) && !r.Found():
		e.Hint = "no catalog has the package; \"bindery list packages CATALOG\" lists those of a catalog"
	case errors.As(err, &none) && len(none.Catalogs) > 1:
		e.Hint = "--priority CATALOG=NUMBER, spec.priority of a ClusterCatalog, says which one is used"
	case errors.As(err, &none) && len(q.Channels) > 0 && !slices.ContainsFunc(r.Channels(), func(name string) bool {
		return slices.Contains(q.Channels, name)
	}):
		e.Hint = "the package has the channels " + shortened(r.Channels(), 20)
	case errors.As(err, &none) && q.Version != "" && resolves(r, q, func(q *resolve.Request) { q.Version = "" }):
		e.Hint = "without --version there is a candidate; \"bindery list bundles CATALOG PACKAGE\" lists the versions"
	case errors.As(err, &none) && q.Installed != nil && !q.SelfCertified:
		e.Hint = "no entry replaces or skips what is installed; --self-certified allows any bundle"
	case errors.As(err, &dependency):
		e.Object = dependency.Bundle
		e.Hint = "OLM v1 installs no dependencies: another version may declare none (--version), and --v0 answers " +
			"for OLM v0"
	}
	return e
}
