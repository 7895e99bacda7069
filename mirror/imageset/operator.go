package imageset

import (
	"cmp"
	"crypto/fips140"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Operator is a catalog of which something is wanted.
type Operator struct {
	// Catalog has a tag, a digest or both, or is a layout. Written is the reference as it stands in the file.
	Catalog Ref
	Written string
	// Full wants all bundles of the packages and channels, not only the heads.
	Full bool
	// Packages are those to keep; none means all.
	Packages []Package
	// TargetCatalog replaces the path at the destination, TargetTag the tag.
	TargetCatalog, TargetTag string
	// TargetCatalogSourceTemplate is the path of a CatalogSource to be filled in.
	TargetCatalogSourceTemplate string
	// Platforms, unless empty, are the platforms to copy; OS and Architecture are set in each.
	Platforms        []v1.Platform
	SkipDependencies bool
	Line             int
}

// WholeCatalog reports whether the catalog is wanted as it is, neither filtered nor rebuilt.
func (o *Operator) WholeCatalog() bool { return o.Full && len(o.Packages) == 0 }

// Package is a package to keep.
type Package struct {
	Name string
	// Channels are those to keep; none means all.
	Channels []Channel
	// DefaultChannel, unless empty, becomes the default channel.
	DefaultChannel string
	// MinVersion and MaxVersion bound the versions, both inclusive; may be shorter than three numbers.
	MinVersion, MaxVersion string
	Line                   int
}

// Channel is a channel to keep, with bounds as in [Package].
type Channel struct {
	Name                   string
	MinVersion, MaxVersion string
	Line                   int
}

// operatorForm is an operator as it is written. The order of the fields is that of oc-mirror, since a hash is made of them.
type operatorForm struct {
	Packages                    []packageForm  `json:"packages"`
	Catalog                     string         `json:"catalog"`
	TargetCatalog               string         `json:"targetCatalog,omitempty"`
	TargetTag                   string         `json:"targetTag,omitempty"`
	Full                        bool           `json:"full,omitempty"`
	SkipDependencies            bool           `json:"skipDependencies,omitempty"`
	TargetCatalogSourceTemplate string         `json:"targetCatalogSourceTemplate,omitempty"`
	Platforms                   []platformForm `json:"platforms,omitempty"`
}

type packageForm struct {
	Name           string        `json:"name"`
	Channels       []channelForm `json:"channels,omitempty"`
	DefaultChannel string        `json:"defaultChannel,omitempty"`
	MinVersion     string        `json:"minVersion,omitempty"`
	MaxVersion     string        `json:"maxVersion,omitempty"`
}

type channelForm struct {
	Name       string `json:"name"`
	MinVersion string `json:"minVersion,omitempty"`
	MaxVersion string `json:"maxVersion,omitempty"`
}

// form returns the written form of an operator with a catalog of the given digest; without one the catalog is as
// written.
func (o *Operator) form(source digest.Digest) operatorForm {
	f := operatorForm{Catalog: o.Written, TargetCatalog: o.TargetCatalog, TargetTag: o.TargetTag, Full: o.Full,
		SkipDependencies: o.SkipDependencies, TargetCatalogSourceTemplate: o.TargetCatalogSourceTemplate,
		Platforms: platforms(o.Platforms)}
	if source != "" && o.Catalog.InRegistry() {
		f.Catalog = o.Catalog.Repository() + "@" + source.String()
	}
	for _, p := range o.Packages {
		entry := packageForm{Name: p.Name, DefaultChannel: p.DefaultChannel, MinVersion: p.MinVersion,
			MaxVersion: p.MaxVersion}
		for _, c := range p.Channels {
			entry.Channels = append(entry.Channels, channelForm{c.Name, c.MinVersion, c.MaxVersion})
		}
		f.Packages = append(f.Packages, entry)
	}
	return f
}

// FilterHash returns the name that oc-mirror gives to the result of filtering the catalog with the given digest: the
// MD5 of the operator's JSON without what only concerns the destination. It is needed to read that program's workspaces
// and caches, and protects nothing.
func (o Operator) FilterHash(source digest.Digest) string {
	f := o.form(source)
	f.TargetCatalog, f.TargetTag, f.TargetCatalogSourceTemplate = "", "", ""
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and booleans only
	}
	var sum [md5.Size]byte
	fips140.WithoutEnforcement(func() { sum = md5.Sum(text) }) //nolint:gosec // see above
	return hex.EncodeToString(sum[:])
}

// uniqueName is what distinguishes a catalog from others: its reference with the parts that hold at the destination.
func (o *Operator) uniqueName() string {
	name := o.Catalog
	if o.TargetCatalog != "" {
		name.Path = o.TargetCatalog
	}
	if o.TargetTag != "" {
		name.Tag, name.Digest = o.TargetTag, ""
	}
	return name.String()
}

// readOperator reads an entry of operators.
func (r *reader) readOperator(n node) Operator {
	o := Operator{Written: n.text("catalog"), Full: n.flag("full"), TargetCatalog: n.text("targetCatalog"),
		TargetTag: n.text("targetTag"), TargetCatalogSourceTemplate: n.text("targetCatalogSourceTemplate"),
		SkipDependencies: n.flag("skipDependencies"), Platforms: n.platforms(), Line: n.line()}
	var err error
	if o.Catalog, err = ParseRef(o.Written, r.options.Transports...); err != nil && !n.misfit("catalog") {
		fix := "catalog: registry.example.com/path/catalog:v1"
		if errors.Is(err, errTagless) {
			fix = "add a tag, such as :v1, or a digest: none is implied"
		}
		n.wrong("catalog", err.Error(), fix)
	}
	if err == nil || errors.Is(err, errTagless) {
		err = cmp.Or(n.checkRegistry("catalog", o.Catalog), err)
	}
	if err != nil {
		o.Catalog = Ref{}
	}
	n.checkTarget("targetCatalog")
	n.checkTag("targetTag")
	if err == nil && !o.Catalog.InRegistry() && o.TargetCatalog == "" && !pathExpr().MatchString(path.Base(o.Catalog.Path)) {
		n.wrong("catalog", "the directory's name cannot be that of a repository", "set targetCatalog")
	}
	names := map[string]int{}
	for _, item := range n.objects("packages") {
		p := r.readPackage(item, o.Full)
		o.Packages = append(o.Packages, p)
		item.checkUnique("package", p.Name, names)
	}
	return o
}

// readPackage reads a package of an operator entry.
func (r *reader) readPackage(n node, full bool) Package {
	p := Package{Name: n.text("name"), DefaultChannel: n.text("defaultChannel"), MinVersion: n.text("minVersion"),
		MaxVersion: n.text("maxVersion"), Line: n.line()}
	ranges, inChannels := n.checkVersions(), false
	names := map[string]int{}
	for _, item := range n.objects("channels") {
		c := Channel{item.text("name"), item.text("minVersion"), item.text("maxVersion"), item.line()}
		inChannels = item.checkVersions() || inChannels
		p.Channels = append(p.Channels, c)
		item.checkUnique("channel", c.Name, names)
	}
	if ranges && inChannels {
		r.wrong(n.at, n.path, "mixing both filtering by minVersion/maxVersion and filtering by channel "+
			"minVersion/maxVersion is not allowed", "write the versions of the package into each of its channels")
	}
	if full && (ranges || inChannels) {
		r.wrong(n.at, n.path, "full: true cannot be mixed with versions", "remove full, or the versions")
	}
	return p
}
