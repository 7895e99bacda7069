package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// packageSummary is a package's entry in the list of packages. Texts are clipped, as they stay in memory.
type packageSummary struct {
	name, title, provider, about string
	search                       string // the searched text in lower case
	defaultChannel, head         string
	version                      string
	channels, bundles            int
	hasIcon, deprecated          bool
}

// How much of texts stays in memory.
const (
	maxAbout  = 240
	maxSearch = 600
)

// summarize reads the data for the list of packages: each package's own blob, its channels, its deprecations, and the
// head of its default channel.
func (c *Content) summarize(ctx context.Context) error {
	for i := range c.blobs {
		if c.blobs[i].schema == declcfg.SchemaBundle {
			c.bundles++
		}
	}
	for name := range c.spans {
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
			c.packages = append(c.packages, s)
		}
	}
	slices.SortFunc(c.packages, func(a, b packageSummary) int { return cmp.Compare(a.name, b.name) })
	for i := range c.packages {
		c.byName[c.packages[i].name] = i
	}
	return nil
}

// summary returns that of one package; ok is false if the catalog has no such olm.package blob.
func (c *Content) summary(name string) (packageSummary, bool, error) {
	s := packageSummary{name: name}
	var pkg *declcfg.Package
	for _, b := range c.of(name) {
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
	if b := c.first(name, declcfg.SchemaChannel, pkg.DefaultChannel); b != nil {
		read, err := c.parse(b)
		if err != nil {
			return s, false, err
		}
		channel, _ = read.(*declcfg.Channel)
	}
	s.defaultChannel = strings.Clone(pkg.DefaultChannel)
	s.hasIcon = iconType(pkg.Icon) != ""
	var facts csv
	if channel != nil {
		s.head = strings.Clone(head(channel))
		if b := c.first(name, declcfg.SchemaBundle, s.head); b != nil {
			bundle, err := c.bundle(b)
			if err != nil {
				return s, false, err
			}
			facts = csvOf(bundle)
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
	s.search = strings.ToLower(
		clip(strings.Join(append([]string{name, s.title, s.provider, s.about}, facts.Keywords...), " "), maxSearch))
	return s, true, nil
}

// parse reads one blob.
func (c *Content) parse(b *blob) (declcfg.Blob, error) {
	text, err := c.read(b)
	if err != nil {
		return nil, err
	}
	return declcfg.Parse(&declcfg.Meta{Schema: b.schema, Package: b.pkg, Name: b.name, Blob: text})
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
	reader := declcfg.NewReader(declcfg.LoadOptions{Skeleton: true})
	return reader.Read(ctx, c.reader(c.of(pkg)), "package "+pkg)
}

// head returns the head of a channel: the first bundle that none replaces or skips.
func head(ch *declcfg.Channel) string {
	if heads := ch.Heads(); len(heads) > 0 {
		return heads[0]
	}
	return ""
}

// csv has the displayed fields of a bundle's ClusterServiceVersion.
type csv struct {
	property.CSVMetadata
}

// csvOf reads them from either of the places where a catalog may have them. Undecodable parts are not shown.
func csvOf(b *declcfg.Bundle) csv {
	var out csv
	for _, p := range b.Properties {
		if p.Type == declcfg.PropertyCSVMetadata {
			_ = json.Unmarshal(p.Value, &out.CSVMetadata)
			return out
		}
	}
	object, err := b.CSV()
	if err != nil || len(object) == 0 {
		return out
	}
	var full struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			property.CSVMetadata
			APIs json.RawMessage                    `json:"apiservicedefinitions"`
			CRDs property.CustomResourceDefinitions `json:"customresourcedefinitions"`
		} `json:"spec"`
	}
	_ = json.NewDecoder(bytes.NewReader(object)).Decode(&full)
	out.CSVMetadata = full.Spec.CSVMetadata
	out.Annotations, out.CustomResourceDefinitions = full.Metadata.Annotations, full.Spec.CRDs
	return out
}

// icons are the displayed media types and the headers sent with them.
var icons = map[string]string{
	"image/png": "image/png", "image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/gif": "image/gif",
	"image/svg+xml": "image/svg+xml",
}

// maxIcon is the maximum size of a displayed icon in bytes.
const maxIcon = 1 << 20

// iconType returns the media type of an icon that can be displayed; empty if it cannot.
func iconType(i *declcfg.Icon) string {
	if i == nil || len(i.Data) == 0 || len(i.Data) > maxIcon {
		return ""
	}
	return icons[strings.ToLower(strings.TrimSpace(i.MediaType))]
}
