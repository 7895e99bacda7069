package web

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// packageSummary is a package's entry in the list of packages. Texts are clipped, as they stay in memory.
type packageSummary struct {
	name, title, provider, about string
	defaultChannel, head         string
	version                      string
	channels, bundles            int
	hasIcon, deprecated          bool
	categories, modes, features  []string
	level                        int       // the capability level; zero if there is none
	created                      time.Time // of the head; zero if it is not known
	search                       searchText
}

// searchText has the searched texts of a package in lower case. A word that is found in names weighs most, one in about
// least.
type searchText struct{ names, kinds, provider, keywords, about string }

// How much of texts stays in memory.
const (
	maxAbout  = 240
	maxSearch = 600  // characters of keywords
	maxKinds  = 4000 // bytes of the kinds of provided APIs
	maxFacets = 12   // categories of a package
)

// summarize reads the data for the list of packages: each package's own blob, its channels, its deprecations, and the
// head of its default channel.
func (c *Content) summarize(ctx context.Context) error {
	for i := range c.blobs {
		if c.blobs[i].schema == declcfg.SchemaBundle {
			c.bundles++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.spans)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == "" {
			continue
		}
		s, ok, err := c.summary(name)
		if err != nil {
			return fmt.Errorf("package %q: %w", name, err)
		}
		if ok {
			c.byName[name] = len(c.packages)
			c.packages = append(c.packages, s)
		}
	}
	return nil
}

// summary returns that of one package; ok is false if the catalog has no such olm.package blob.
func (c *Content) summary(name string) (packageSummary, bool, error) {
	s := packageSummary{name: name}
	var pkg *declcfg.Package
	for _, b := range c.blobsOf(name) {
		switch b.schema {
		case declcfg.SchemaBundle:
			s.bundles++
			continue
		case declcfg.SchemaChannel:
			s.channels++
			continue
		case declcfg.SchemaPackage, declcfg.SchemaDeprecations:
		default:
			continue
		}
		read, err := c.parse(&b)
		if err != nil {
			return s, false, err
		}
		switch read := read.(type) {
		case *declcfg.Package:
			pkg = read
		case *declcfg.Deprecations:
			for _, e := range read.Entries {
				s.deprecated = s.deprecated || e.Reference.Schema == declcfg.SchemaPackage
			}
		}
	}
	if pkg == nil {
		return s, false, nil
	}
	var channel *declcfg.Channel
	if b := c.findFirst(name, declcfg.SchemaChannel, pkg.DefaultChannel); b != nil {
		read, err := c.parse(b)
		if err != nil {
			return s, false, err
		}
		channel, _ = read.(*declcfg.Channel)
	}
	s.defaultChannel = strings.Clone(pkg.DefaultChannel)
	s.hasIcon = pictureOf(pkg.Icon).kind != ""
	var facts csv
	var kinds []string
	if channel != nil {
		s.head = strings.Clone(head(channel))
		if b := c.findFirst(name, declcfg.SchemaBundle, s.head); b != nil {
			bundle, err := c.bundle(b)
			if err != nil {
				return s, false, err
			}
			facts, kinds = csvOf(bundle), kindsOf(bundle)
			if v, err := bundle.VersionRelease(); err == nil {
				s.version = v.String()
			}
		}
	}
	s.title = clip(strings.TrimSpace(facts.DisplayName), maxName)
	s.provider = clip(strings.TrimSpace(facts.Provider.Name), maxName)
	about := facts.Annotations["description"]
	for _, other := range []string{pkg.Description, facts.Description} {
		if strings.TrimSpace(about) == "" {
			about = plain(clip(other, 8*maxAbout))
		}
	}
	s.about = clip(strings.Join(strings.Fields(clip(about, 8*maxAbout)), " "), maxAbout)
	s.facets(&facts)
	s.search = searchText{
		names:    strings.ToLower(name + " " + s.title),
		kinds:    " " + strings.ToLower(strings.Join(kinds, " ")) + " ",
		provider: strings.ToLower(s.provider),
		keywords: strings.ToLower(clip(strings.Join(slices.Concat(facts.Keywords, s.categories), " "), maxSearch)),
		about:    strings.ToLower(s.about),
	}
	return s, true, nil
}

// facets takes what the list of packages is filtered and sorted by.
func (s *packageSummary) facets(f *csv) {
	for _, one := range split(f.Annotations["categories"]) {
		if len(s.categories) < maxFacets && !slices.Contains(s.categories, one) {
			s.categories = append(s.categories, clip(strings.Clone(one), maxName))
		}
	}
	for _, mode := range f.modes() {
		if slices.Contains(installModes, mode) {
			s.modes = append(s.modes, strings.Clone(mode))
		}
	}
	s.features, s.level = f.features(), f.level()
	s.created, _ = f.created()
}

// kindsOf returns the kinds of the APIs that a bundle provides.
func kindsOf(b *declcfg.Bundle) []string {
	var kinds []string
	size := 0
	for _, prop := range b.Properties {
		var k property.GVK
		if prop.Type != declcfg.PropertyGVK || json.Unmarshal(prop.Value, &k) != nil || slices.Contains(kinds, k.Kind) {
			continue
		}
		if size += len(k.Kind) + 1; size > maxKinds {
			break
		}
		kinds = append(kinds, k.Kind)
	}
	return kinds
}

func (c *Content) parse(b *blob) (declcfg.Blob, error) {
	text, err := c.read(b)
	if err != nil {
		return nil, err
	}
	m := declcfg.Meta{Schema: b.schema, Package: b.pkg, Name: b.name, Blob: text}
	return m.Parse()
}

// bundle reads a bundle with its manifests.
func (c *Content) bundle(b *blob) (*declcfg.Bundle, error) {
	read, err := c.parse(b)
	if err != nil {
		return nil, err
	}
	bundle, ok := read.(*declcfg.Bundle)
	if !ok {
		return nil, fmt.Errorf("%s %q is no bundle", b.schema, b.name)
	}
	return bundle, nil
}

// catalog reads a whole package without the manifests of its bundles.
func (c *Content) catalog(ctx context.Context, pkg string) (*declcfg.Catalog, error) {
	reader := declcfg.NewReader(declcfg.LoadOptions{Skeleton: true, Checked: true})
	return reader.Read(ctx, c.reader(c.blobsOf(pkg)), "package "+pkg)
}

// head returns the head of a channel: the first bundle that none replaces or skips.
func head(ch *declcfg.Channel) string {
	if heads := ch.Heads(); len(heads) > 0 {
		return heads[0]
	}
	return ""
}
