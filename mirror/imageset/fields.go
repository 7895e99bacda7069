package imageset

import (
	"errors"
	"path"
	"regexp"
	"strconv"

	"github.com/operator-bindery/bindery/internal/fault"
)

// images reads what stands below mirror or delete.
func (r *reader) images(n node) {
	for _, name := range []string{"platform", "helm", "samples"} {
		if hollow(n.fields[name]) {
			continue
		}
		r.set.Unsupported = append(r.set.Unsupported, n.field(name))
		r.unless(r.options.IgnoreUnsupported, n.at.Key(name), n.field(name), "is not mirrored by this program",
			"remove it, or go on without it with --ignore-unsupported")
	}
	unique := map[string]int{}
	for _, item := range n.objects("operators") {
		o := r.operator(item)
		r.set.Operators = append(r.set.Operators, o)
		if o.Catalog.IsZero() {
			continue
		}
		name := o.uniqueName()
		if line, twice := unique[name]; twice {
			item.wrong("catalog",
				"duplicate: catalog "+fault.Quote(o.Written)+" has the same name at the destination as "+
					"the one in "+lineName(line), "set targetCatalog or targetTag of one, or join their packages")
			continue
		}
		unique[name] = o.Line
	}
	for _, item := range n.objects("additionalImages") {
		r.set.AdditionalImages = append(r.set.AdditionalImages, r.additional(item))
	}
	for _, item := range n.objects("blockedImages") {
		b := Blocked{Name: item.text("name"), Line: item.line()}
		var err error
		if item.misfit("name") {
			continue
		} else if b.Pattern, err = regexp.Compile(b.Name); err != nil {
			item.wrong("name", fault.Quote(b.Name)+" is no regular expression: "+fault.Clip(err.Error(), 500), "")
		} else if b.Name == "" {
			item.wrong("name", "an empty expression would leave out every image", "name: registry/path")
		}
		r.set.BlockedImages = append(r.set.BlockedImages, b)
	}
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

// operator reads an entry of operators.
func (r *reader) operator(n node) Operator {
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
	if err != nil {
		o.Catalog = Ref{}
	}
	n.target("targetCatalog")
	n.tag("targetTag")
	if err == nil && !o.Catalog.InRegistry() && o.TargetCatalog == "" && !pathExpr.MatchString(path.Base(o.Catalog.Path)) {
		n.wrong("catalog", "the directory's name cannot be that of a repository", "set targetCatalog")
	}
	names := map[string]int{}
	for _, item := range n.objects("packages") {
		p := r.pkg(item, o.Full)
		o.Packages = append(o.Packages, p)
		item.unique("package", p.Name, names)
	}
	return o
}

// pkg reads a package of an operator entry.
func (r *reader) pkg(n node, full bool) Package {
	p := Package{Name: n.text("name"), DefaultChannel: n.text("defaultChannel"), MinVersion: n.text("minVersion"),
		MaxVersion: n.text("maxVersion"), Line: n.line()}
	ranges, inChannels := n.versions(), false
	names := map[string]int{}
	for _, item := range n.objects("channels") {
		c := Channel{item.text("name"), item.text("minVersion"), item.text("maxVersion"), item.line()}
		inChannels = item.versions() || inChannels
		p.Channels = append(p.Channels, c)
		item.unique("channel", c.Name, names)
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

// additional reads an entry of additionalImages.
func (r *reader) additional(n node) AdditionalImage {
	a := AdditionalImage{Written: n.text("name"), TargetRepo: n.text("targetRepo"), TargetTag: n.text("targetTag"),
		Platforms: n.platforms(), Line: n.line()}
	var err error
	if a.Name, err = ParseRef(a.Written, r.options.Transports...); errors.Is(err, errTagless) {
		n.wrong("name", err.Error(), "add a tag, such as :latest, or a digest: none is implied")
		r.problems[len(r.problems)-1].tagless = true
	} else if err != nil && !n.misfit("name") {
		n.wrong("name", err.Error(), "name: registry.example.com/path/image:v1")
	}
	n.target("targetRepo")
	n.tag("targetTag")
	if _, pathErr := (Target{}).Additional(a); err == nil && pathErr != nil && a.TargetRepo == "" {
		n.wrong("name", "the path cannot be the name of a repository", "set targetRepo")
	}
	return a
}

// target checks a path at the destination.
func (n node) target(name string) {
	if value := n.text(name); value != "" {
		if err := checkPath(value); err != nil {
			n.wrong(name, err.Error(), "components of a-z and 0-9, joined by . _ __ or dashes, with / between them")
		}
	}
}

// tag checks a tag at the destination.
func (n node) tag(name string) {
	if value := n.text(name); value != "" && !tagExpr.MatchString(value) {
		n.wrong(name, fault.Quote(value)+" is no tag", "letters, digits, _ . and -, at most 128, the first no . or -")
	}
}

// unique checks the name of a package or a channel.
func (n node) unique(what, name string, lines map[string]int) {
	line, twice := lines[name]
	switch {
	case n.misfit("name"):
	case name == "":
		n.wrong("name", what+" without a name: name must be specified", "")
	case twice:
		n.wrong("name", "duplicate "+what+" entry "+fault.Quote(name)+", as in "+lineName(line), "join the two")
	default:
		lines[name] = n.line()
	}
}

// lineName is how a message calls a line.
func lineName(line int) string {
	if line == 0 {
		return "the file before"
	}
	return "line " + strconv.Itoa(line)
}
