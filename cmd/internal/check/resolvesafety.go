package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/check/bundlecheck"
	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/resolve"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/render"
)

// upgradeSafety says whether an upgrade was judged by its CustomResourceDefinitions.
type upgradeSafety struct {
	Judged bool `json:"judged"`
	// Reason says why it was not.
	Reason string `json:"reason,omitempty"`
	// Refused is the message with which OLM v1 refuses an upgrade that follows, or with --pull its bundle; what it
	// refuses of the first is an error.
	Refused string `json:"refused,omitempty"`
}

const (
	enforceStrict = "Strict"
	enforceNone   = "None"
)

// safetyFlags are the flags of resolve about the bundles themselves.
func (o *resolveOptions) safetyFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "pull", Destination: &o.pull, Category: category,
			Usage: "read the images of the bundles: whether OLM v1 installs the one, and takes the upgrade from the other"},
		&cli.StringFlag{Name: "crd-upgrade-safety", Destination: &o.enforcement, Value: enforceStrict, Category: category,
			Usage: "spec.install.preflight.crdUpgradeSafety.enforcement: whether upgrades are judged (" + enforceStrict +
				"|" + enforceNone + ")"},
	}
}

// checkSafety refuses values that are not known.
func (o *resolveOptions) checkSafety() error {
	if v := o.enforcement; v != enforceStrict && v != enforceNone {
		return cmdline.Usagef("invalid --crd-upgrade-safety value %q, expected (%s|%s)", v, enforceStrict, enforceNone)
	}
	return nil
}

// maxJudged is how many upgrades that follow are judged: the manifests of their bundles are in memory.
const maxJudged = 64

// resolvedSafety judges the bundles of an answer and the upgrades between them.
type resolvedSafety struct {
	p        *option.Session
	o        *resolveOptions
	with     render.Options
	settings manifests.Settings
	blobs    map[string]*declcfg.Bundle
	judge    *safety.Judge
}

// judgedBundle is what is known of a bundle.
type judgedBundle struct {
	definitions []safety.Definition
	reason      string // why the definitions are not known
	refused     error  // what OLM v1 says instead of installing it, with --pull
	hint        string
}

// judge judges the bundles that were resolved: with --pull whether OLM v1 installs them, and whether it takes
// the upgrades to them. What it refuses of the first is an error with the message of the ClusterExtension's condition.
func (o *resolveOptions) judge(ctx context.Context, p *option.Session, q *resolve.Request, out *Resolved,
	settings manifests.Settings) error {
	a := out.Answer
	upgrade := q.Installed != nil && !a.Unchanged
	if !upgrade && !o.pull && len(out.Next) == 0 {
		return nil
	}
	with, err := o.Options(ctx, p, o.catalogs...)
	if err != nil {
		return err
	}
	s := &resolvedSafety{p: p, o: o, with: with, settings: settings}
	strict := o.enforcement == enforceStrict
	if upgrade && !strict {
		out.UpgradeSafety = &upgradeSafety{Reason: notAsked}
	}
	if !strict && !o.pull {
		notJudged(out.Next, notAsked)
		return nil
	}
	names := []string{a.Bundle}
	if upgrade && strict {
		names = append(names, q.Installed.Name)
	}
	next := out.Next[:min(len(out.Next), maxJudged)]
	for i := range next {
		names = append(names, next[i].Bundle)
	}
	if s.blobs, err = o.blobsOf(ctx, p, with, a.Catalog, names); err != nil {
		return err
	}
	if s.judge, err = safety.NewJudge(); err != nil {
		return err
	}
	to, err := s.bundle(ctx, a.Bundle)
	switch {
	case err != nil:
		return err
	case to.refused != nil:
		return refusedAnswer(a, to.refused, to.hint)
	case upgrade && strict:
		from := judgedBundle{}
		if to.reason == "" {
			if from, err = s.bundle(ctx, q.Installed.Name); err != nil {
				return err
			}
		}
		out.UpgradeSafety, err = s.upgrade(ctx, from, to)
		if err == nil && out.UpgradeSafety.Refused != "" {
			err = refusedAnswer(a, errors.New(out.UpgradeSafety.Refused), "--crd-upgrade-safety "+enforceNone+
				" answers for a ClusterExtension that does not ask, --version for another bundle")
		}
		if err != nil {
			return err
		}
		if reason := out.UpgradeSafety.Reason; reason != "" {
			p.Log.Info("the upgrade was not judged by its CustomResourceDefinitions: " + reason)
		}
	}
	if err := s.following(ctx, next, to, strict); err != nil {
		return err
	}
	notJudged(out.Next[len(next):], fmt.Sprintf("only the first %d that follow are judged", maxJudged))
	if n, reason := unjudged(out.Next); n > 0 && strict {
		p.Log.Info(fmt.Sprintf("%d of %d upgrades that follow were not judged by their CustomResourceDefinitions: %s", n,
			len(out.Next), reason))
	}
	return nil
}

const notAsked = "--crd-upgrade-safety " + enforceNone

// notJudged says of upgrades that follow why they are not judged.
func notJudged(next []nextResolved, reason string) {
	for i := range next {
		next[i].UpgradeSafety = &upgradeSafety{Reason: reason}
	}
}

// unjudged counts the upgrades that were not judged, and says why the first of them was not.
func unjudged(next []nextResolved) (n int, reason string) {
	for _, f := range next {
		if !f.UpgradeSafety.Judged {
			n, reason = n+1, cmp.Or(reason, f.UpgradeSafety.Reason)
		}
	}
	return n, reason
}

// following judges the upgrades that follow a bundle. None of them is an error: OLM v1 has not come to them.
func (s *resolvedSafety) following(ctx context.Context, next []nextResolved, from judgedBundle, strict bool) error {
	for i := range next {
		to, err := s.bundle(ctx, next[i].Bundle)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			to.reason = bundlecmd.Clip(err).Error()
		}
		out := &upgradeSafety{Reason: notAsked}
		if strict {
			if out, err = s.upgrade(ctx, from, to); err != nil {
				return err
			}
		}
		if to.refused != nil {
			out.Refused = to.refused.Error()
		}
		next[i].UpgradeSafety, from = out, to
	}
	return nil
}

// bundle reads a bundle.
func (s *resolvedSafety) bundle(ctx context.Context, name string) (out judgedBundle, err error) {
	if b := s.blobs[name]; b != nil && b.Image == "" && s.o.pull {
		return judgedBundle{reason: fmt.Sprintf("the bundle %q has no image", name), refused: errors.New("the bundle has no image"),
			hint: "OLM v1 installs images: add the one of the bundle"}, nil
	}
	m, reason, err := s.manifestsOf(ctx, name, s.blobs[name])
	var read *manifests.ReadError
	if errors.As(err, &read) && s.o.pull {
		out.refused, out.hint = bundlecmd.Clip(err), "\"bindery check IMAGE\" says where in its files"
	}
	if out.reason, err = unread(name, reason, err); err != nil || out.reason != "" {
		return out, err
	}
	if s.o.pull {
		if all := bundlecheck.Problems(ctx, m, s.settings); len(all) > 0 { // OLM v1 names the first
			out.refused, out.hint = errors.New(all[0].Message), "\"bindery check IMAGE\" says more; --gate turns on "+
				"what a cluster may have"
		}
	}
	if out.definitions, err = bundlecheck.Definitions(m, s.settings); err != nil {
		out.reason = err.Error()
	}
	return out, nil
}

// upgrade says whether OLM v1 refuses an upgrade, or why it cannot be judged.
func (s *resolvedSafety) upgrade(ctx context.Context, from, to judgedBundle) (*upgradeSafety, error) {
	if reason := cmp.Or(to.reason, from.reason); reason != "" {
		return &upgradeSafety{Reason: reason}, nil
	}
	refused, failed := s.judge.Upgrade(ctx, from.definitions, to.definitions)
	switch {
	case ctx.Err() != nil:
		return nil, failed
	case len(refused) > 0:
		return &upgradeSafety{Judged: true, Refused: safety.Message(refused)}, nil
	case failed != nil:
		return &upgradeSafety{Reason: failed.Error()}, nil
	}
	return &upgradeSafety{Judged: true}, nil
}

// refusedAnswer is the error of a bundle that is resolved and refused.
func refusedAnswer(a *resolve.Answer, err error, hint string) error {
	version := a.Version
	if a.Release != "" {
		version += "+" + a.Release
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: a.Bundle, Hint: hint,
		Err: fmt.Errorf("error for resolved bundle %q with version %q: %w", a.Bundle, version, err)}
}

// blobsOf reads bundles of the package with their manifests, out of the catalog that has the resolved one, or else out
// of the others.
func (o *resolveOptions) blobsOf(ctx context.Context, p *option.Session, with render.Options, first string, names []string) (
	map[string]*declcfg.Bundle, error) {
	refs := slices.DeleteFunc(slices.Clone(o.catalogs), func(ref string) bool { return ref == first })
	out := map[string]*declcfg.Bundle{}
	for _, ref := range slices.Insert(refs, 0, first) {
		here, err := o.blobsIn(ctx, p, with, ref, names)
		if err != nil {
			return nil, err
		}
		for name, b := range here {
			if out[name] == nil {
				out[name] = b
			}
		}
		if len(out) == len(names) {
			break
		}
	}
	return out, nil
}

// blobsIn reads bundles of the package with their manifests, which --pull does not need, out of a catalog.
func (o *resolveOptions) blobsIn(ctx context.Context, p *option.Session, with render.Options, ref string, names []string) (
	map[string]*declcfg.Bundle, error) {
	with.Allow, with.Skeleton, with.Packages, with.Schemaless = option.CatalogKinds(), o.pull, []string{o.pkg}, true
	blobs, err := with.Render(ctx, ref)
	if err != nil {
		return nil, p.OpmMessage(err)
	}
	out := map[string]*declcfg.Bundle{}
	for blob, err := range blobs {
		if err != nil {
			return nil, p.OpmMessage(err)
		}
		if b, ok := blob.(*declcfg.Bundle); ok && b.Package == o.pkg && slices.Contains(names, b.Name) {
			out[b.Name] = b // OLM v1 keeps the last of one name
		}
	}
	return out, nil
}

// manifestsOf returns the manifests of a bundle, or why they are not known. With --pull they are those of its image.
func (s *resolvedSafety) manifestsOf(ctx context.Context, name string, b *declcfg.Bundle) (m *manifests.Bundle, reason string,
	err error) {
	switch {
	case b == nil:
		return nil, fmt.Sprintf("no catalog has the bundle %q", name), nil
	case !s.o.pull:
		if csv, err := b.CSV(); !b.HasObjects || csv == nil && err == nil {
			return nil, fmt.Sprintf("the catalog has no manifests of the bundle %q; --pull reads its image", name), nil
		}
		m, err = bundlecheck.BlobManifests(b)
		return m, "", err
	}
	err = s.with.BundleFiles(ctx, b.Image, func(_ render.FetchedBundle, fsys fs.FS) (err error) {
		m, err = manifests.Read(fsys)
		return err
	})
	return m, "", err
}

// unread makes a reason of the error of a bundle that OLM v1 cannot read.
func unread(name, reason string, err error) (string, error) {
	var read *manifests.ReadError
	if errors.As(err, &read) {
		return fmt.Sprintf("OLM v1 cannot read the bundle %q: %v", name, bundlecmd.Clip(err)), nil
	}
	return reason, err
}
