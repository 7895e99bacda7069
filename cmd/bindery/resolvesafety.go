package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/check"
	"github.com/operator-bindery/bindery/bundle/manifests"
	"github.com/operator-bindery/bindery/bundle/manifests/safety"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/resolve"
	"github.com/operator-bindery/bindery/render"
)

// upgradeSafety says whether an upgrade was judged by its CustomResourceDefinitions; a refused one is an error.
type upgradeSafety struct {
	Judged bool `json:"judged"`
	// Reason says why it was not.
	Reason string `json:"reason,omitempty"`
}

const (
	enforceStrict = "Strict"
	enforceNone   = "None"
)

// safetyFlags are the flags of resolve about the bundles themselves.
func safetyFlags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "pull", Category: category,
			Usage: "read the images of the bundles: whether OLM v1 installs the one, and takes the upgrade from the other"},
		&cli.StringFlag{Name: "crd-upgrade-safety", Value: enforceStrict, Category: category,
			Usage: "spec.install.preflight.crdUpgradeSafety.enforcement: whether upgrades are judged (" + enforceStrict +
				"|" + enforceNone + ")"},
	}
}

// checkSafetyFlags refuses values and flags without an effect.
func checkSafetyFlags(c *cli.Context) error {
	switch v := c.String("crd-upgrade-safety"); {
	case v != enforceStrict && v != enforceNone:
		return cmdline.Usagef("invalid --crd-upgrade-safety value %q, expected (%s|%s)", v, enforceStrict, enforceNone)
	case c.IsSet("crd-upgrade-safety") && !c.IsSet("installed"):
		return cmdline.Usagef("--crd-upgrade-safety has no effect without --installed")
	}
	return nil
}

// judgeResolved judges the bundle that was resolved: with --pull whether OLM v1 installs it, and whether it takes the
// upgrade. What it refuses is an error with the message of the ClusterExtension's condition.
func (p *program) judgeResolved(c *cli.Context, q *resolve.Request, a *resolve.Answer, settings manifests.Settings) (
	*upgradeSafety, error) {
	upgrade := q.Installed != nil && !a.Unchanged
	if !upgrade && !c.Bool("pull") {
		return nil, nil
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return nil, err
	}
	names := []string{a.Bundle}
	if upgrade && c.String("crd-upgrade-safety") == enforceStrict {
		names = append(names, q.Installed.Name)
	}
	blobs, err := p.blobsOf(c, o, a.Catalog, names)
	if err != nil {
		return nil, err
	}
	if b := blobs[a.Bundle]; b != nil && b.Image == "" && c.Bool("pull") {
		return nil, refusedAnswer(a, errors.New("the bundle has no image"), "OLM v1 installs images: add the one of the bundle")
	}
	chosen, reason, err := p.manifestsOf(c, o, a.Bundle, blobs[a.Bundle])
	var read *manifests.ReadError
	if errors.As(err, &read) && c.Bool("pull") {
		return nil, refusedAnswer(a, clipped{err}, "\"bindery check IMAGE\" says where in its files")
	}
	if reason, err = unread(a.Bundle, reason, err); err != nil {
		return nil, err
	}
	if chosen != nil && c.Bool("pull") {
		if all := check.Problems(c.Context, chosen, settings); len(all) > 0 { // OLM v1 names the first
			return nil, refusedAnswer(a, errors.New(all[0].Message), "\"bindery check IMAGE\" says more; --gate "+
				"turns on what a cluster may have")
		}
	}
	switch {
	case !upgrade:
		return nil, nil
	case len(names) == 1:
		return &upgradeSafety{Reason: "--crd-upgrade-safety " + enforceNone}, nil
	}
	var old *manifests.Bundle
	if reason == "" {
		old, reason, err = p.manifestsOf(c, o, q.Installed.Name, blobs[q.Installed.Name])
		reason, err = unread(q.Installed.Name, reason, err)
	}
	if err == nil && reason == "" {
		reason, err = p.judgeUpgrade(c, a, old, chosen, settings)
	}
	if err != nil {
		return nil, err
	}
	if reason != "" {
		p.log.Info("the upgrade was not judged by its CustomResourceDefinitions: " + reason)
	}
	return &upgradeSafety{Judged: reason == "", Reason: reason}, nil
}

// judgeUpgrade returns the refusal of an upgrade, or why it cannot be judged.
func (p *program) judgeUpgrade(c *cli.Context, a *resolve.Answer, from, to *manifests.Bundle,
	settings manifests.Settings) (string, error) {
	var sides [2][]safety.Definition
	for i, b := range []*manifests.Bundle{from, to} {
		var err error
		if sides[i], err = check.Definitions(b, settings); err != nil {
			return err.Error(), nil
		}
	}
	judge, err := safety.NewJudge()
	if err != nil {
		return "", err
	}
	refused, failed := judge.Upgrade(c.Context, sides[0], sides[1])
	switch {
	case c.Context.Err() != nil:
		return "", failed
	case len(refused) > 0:
		return "", refusedAnswer(a, errors.New(safety.Message(refused)), "--crd-upgrade-safety "+enforceNone+
			" answers for a ClusterExtension that does not ask, --version for another bundle")
	case failed != nil:
		return failed.Error(), nil
	}
	return "", nil
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
func (p *program) blobsOf(c *cli.Context, o render.Options, first string, names []string) (map[string]*declcfg.Bundle,
	error) {
	o.Allow, o.Skeleton, o.Packages, o.Schemaless = catalogKinds(), c.Bool("pull"), []string{c.Args().First()}, true
	refs := slices.DeleteFunc(c.Args().Slice()[1:], func(ref string) bool { return ref == first })
	out := map[string]*declcfg.Bundle{}
	for _, ref := range slices.Insert(refs, 0, first) {
		here := map[string]*declcfg.Bundle{}
		blobs, err := render.Reference(c.Context, ref, o)
		if err != nil {
			return nil, p.opmMessage(err)
		}
		for blob, err := range blobs {
			if err != nil {
				return nil, p.opmMessage(err)
			}
			if b, ok := blob.(*declcfg.Bundle); ok && b.Package == o.Packages[0] && slices.Contains(names, b.Name) {
				here[b.Name] = b // OLM v1 keeps the last of one name
			}
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

// manifestsOf returns the manifests of a bundle, or why they are not known. With --pull they are those of its image.
func (p *program) manifestsOf(c *cli.Context, o render.Options, name string, b *declcfg.Bundle) (m *manifests.Bundle,
	reason string, err error) {
	switch {
	case b == nil:
		return nil, fmt.Sprintf("no catalog has the bundle %q", name), nil
	case c.Bool("pull") && b.Image == "":
		return nil, fmt.Sprintf("the bundle %q has no image", name), nil
	case !c.Bool("pull"):
		if csv, err := b.CSV(); !b.HasObjects || csv == nil && err == nil {
			return nil, fmt.Sprintf("the catalog has no manifests of the bundle %q; --pull reads its image", name), nil
		}
		m, err = check.BlobManifests(b)
		return m, "", err
	}
	err = render.BundleFiles(c.Context, b.Image, o, func(_ render.FetchedBundle, fsys fs.FS) (err error) {
		m, err = manifests.Read(fsys)
		return err
	})
	return m, "", err
}

// unread makes a reason of the error of a bundle that OLM v1 cannot read.
func unread(name, reason string, err error) (string, error) {
	var read *manifests.ReadError
	if errors.As(err, &read) {
		return fmt.Sprintf("OLM v1 cannot read the bundle %q: %v", name, clipped{err}), nil
	}
	return reason, err
}
