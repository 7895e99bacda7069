package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// changesPage shows what changes from one version of a package to another.
func changesPage(p *page) error {
	v, err := p.view(p.query.Get("package"))
	if err != nil {
		return err
	}
	var bundles [2]*readBundle
	for i, key := range []string{"from", "to"} {
		place := p.c.findFirst(v.summary.name, declcfg.SchemaBundle, p.query.Get(key))
		if place == nil {
			return errNotFound
		}
		if bundles[i], err = p.bundle(place); err != nil {
			return err
		}
	}
	from, to, pkg := bundles[0].of, bundles[1].of, v.summary.name
	report, why, err := p.compare(v, bundles[0], bundles[1])
	if err != nil {
		return err
	}
	titles := [2]string{cmp.Or(v.version(from.Name), name(from.Name)), cmp.Or(v.version(to.Name), name(to.Name))}
	p.open("From "+titles[0]+" to "+titles[1]+" · "+v.summary.heading(), crumb{name(pkg), p.to("package", "name", pkg)},
		crumb{text: "Changes"})
	p.emit(`<div class="title">`)
	p.icon(v.summary, 56, false)
	p.emit(`<div><h1>{}: from <span class="v">{}</span> to <span class="v">{}</span></h1><p class="by">`,
		v.summary.heading(), titles[0], titles[1])
	p.bundleLink(v, from.Name)
	p.emit(` → `)
	p.bundleLink(v, to.Name)
	p.emit("</p></div></div>\n")
	p.chooseVersions(v, from.Name, to.Name)
	p.emit(`<section aria-labelledby="upgrade"><h2 id="upgrade">The upgrade</h2><ul class="diff">` + "\n")
	p.step(v, from.Name, to.Name)
	p.unsupported(to, &bundles[1].facts)
	p.judged(report, why, from, to)
	if why == "" && len(report.Permissions) == 0 {
		p.emit(`<li>The permissions of the operator stay the same.</li>` + "\n")
	}
	if why == "" && len(report.Definitions) == 0 {
		p.emit(`<li>The definitions of its APIs stay the same.</li>` + "\n")
	}
	p.emit("</ul></section>\n")
	p.permissionChanges(report.Permissions)
	p.definitionChanges(report)
	p.objectChanges(report)
	p.close("")
	return nil
}

// maxChoices is how many versions can be chosen.
const maxChoices = 400

// chooseVersions is the form for two other versions, which a server answers.
func (p *page) chooseVersions(v *view, from, to string) {
	if p.files != nil {
		return
	}
	p.emit(`<form class="compare" action="{}" method="get"><input type="hidden" name="package" value="{}">`,
		p.to("changes"), v.summary.name)
	choose := func(label, key literal, chosen string) {
		p.emit(`<label>` + label + ` <select name="` + key + `">`)
		for i := range v.Bundles[:min(len(v.Bundles), maxChoices)] {
			b := v.Bundles[i].Name
			p.emit(`<option value="{}"`, b)
			if b == chosen {
				p.emit(` selected`)
			}
			p.emit(`>{}</option>`, cmp.Or(v.version(b), name(b)))
		}
		p.emit(`</select></label> `)
	}
	choose("From", "from", from)
	choose("to", "to", to)
	p.emit("<button>Compare</button></form>\n")
}

// changesLink links to what changes between two bundles that the catalog has.
func (p *page) changesLink(v *view, from, to, text string) {
	if v.there[from] && v.there[to] && from != to {
		if address := p.to("changes", "package", v.summary.name, "from", from, "to", to); address != "" {
			p.a(address, text)
		}
	}
}

// before returns the bundle that one follows: what it replaces in the default channel or another one, or the next older
// version.
func (v *view) before(bundle string) string {
	for i := range v.Channels {
		for _, e := range v.Channels[i].Entries {
			if e.Name == bundle && v.there[e.Replaces] {
				return e.Replaces
			}
		}
	}
	at := slices.IndexFunc(v.Bundles, func(b declcfg.Bundle) bool { return b.Name == bundle })
	if at >= 0 && at+1 < len(v.Bundles) {
		return v.Bundles[at+1].Name
	}
	return ""
}

// step says whether OLM upgrades from one bundle to another.
func (p *page) step(v *view, from, to string) {
	var by []string
	for i := range v.Channels {
		if slices.ContainsFunc(v.Channels[i].Entries, func(e declcfg.ChannelEntry) bool {
			return e.Name == to && v.follows(&e, from)
		}) {
			by = append(by, v.Channels[i].Name)
		}
	}
	if len(by) == 0 {
		p.emit(`<li class="no">No channel has this upgrade in one step. OLM v1 refuses it, unless the ClusterExtension has ` +
			`<code>upgradeConstraintPolicy: SelfCertified</code>.</li>` + "\n")
		return
	}
	p.emit(`<li>OLM upgrades in one step in the channels `)
	p.channelLinks(v, by)
	p.emit(".</li>\n")
}

// follows reports whether an entry of a channel is an upgrade from a bundle.
func (v *view) follows(e *declcfg.ChannelEntry, from string) bool {
	if e.Replaces == from || slices.Contains(e.Skips, from) {
		return true
	}
	version, ok := v.versions[from]
	if !ok || e.SkipRange == "" {
		return false
	}
	inRange, err := versions.ParseRange(e.SkipRange)
	return err == nil && inRange.Contains(version.Version)
}

// unsupported says for what of a bundle alone OLM v1 refuses it.
func (p *page) unsupported(b *declcfg.Bundle, facts *csv) {
	if modes := facts.modes(); len(modes) > 0 && !slices.Contains(modes, "AllNamespaces") {
		p.emit(`<li class="no">The new version does not support the install mode AllNamespaces. OLM v1 refuses it, unless ` +
			`<code>watchNamespace</code> is configured.</li>` + "\n")
	}
	if len(facts.APIServiceDefinitions.Owned) > 0 {
		p.emit(`<li class="no">The new version has API services. OLM v1 refuses it.</li>` + "\n")
	}
	if slices.ContainsFunc(b.Properties, func(prop declcfg.Property) bool {
		return slices.Contains([]string{declcfg.PropertyGVKRequired, declcfg.PropertyPackageRequired,
			declcfg.PropertyConstraint}, prop.Type)
	}) {
		p.emit(`<li class="no">The new version has dependencies. OLM v1 resolves none, and refuses it.</li>` + "\n")
	}
}

// has returns what a bundle is and has, beside what it installs, as objects that are compared with those of another one.
func (v *view) has(b *declcfg.Bundle) []upgrade.Manifest {
	var all [][2]string // kinds and names
	for _, ch := range v.in[b.Name] {
		all = append(all, [2]string{"channel", ch})
	}
	for _, prop := range b.Properties {
		kind := ""
		switch prop.Type {
		case declcfg.PropertyGVK:
			kind = "provided API"
		case declcfg.PropertyGVKRequired:
			kind = "required API"
		case declcfg.PropertyPackageRequired:
			kind = "required package"
		}
		var of struct {
			property.GVK
			property.PackageRequired
		}
		if kind == "" || json.Unmarshal(prop.Value, &of) != nil {
			continue
		}
		what := of.Kind + " (" + of.Group + "/" + of.Version + ")"
		if of.PackageName != "" {
			what = of.PackageName + " " + of.VersionRange
		}
		all = append(all, [2]string{kind, what})
	}
	for _, ref := range append([]declcfg.RelatedImage{{Image: b.Image}}, b.RelatedImages...) {
		if ref.Image != "" {
			all = append(all, [2]string{"image", ref.Image})
		}
	}
	out := make([]upgrade.Manifest, 0, min(len(all), maxHad))
	for _, one := range all[:cap(out)] {
		out = append(out, upgrade.Manifest{Object: upgrade.Object{Kind: one[0], Name: one[1]}, JSON: []byte("{}")})
	}
	return out
}

// signs are the classes and the words for screen readers of lines that begin with a sign.
var signs = map[byte][2]literal{'+': {"add", "added: "}, '-': {"gone", "removed: "}, '~': {"", "changed: "},
	'!': {"", "now required: "}}

// maxUnfolded is how many changes of a list are shown before the rest is folded.
const maxUnfolded = 20

// diffLines writes a list of lines that begin with a sign; refused may be nil.
func (p *page) diffLines(lines []string, refused map[string]bool) {
	if len(lines) == 0 {
		p.emit(`<p>No changes.</p>`)
		return
	}
	p.emit("\n<ul class=\"diff\">\n")
	for i, line := range lines {
		if i == maxRows || !p.hasSpace() {
			p.emit(`<li>{} are not shown</li>`, count(len(lines)-i, "more change"))
			break
		}
		if i == maxUnfolded && len(lines) > maxUnfolded+5 {
			p.emit(`</ul><details><summary>{}</summary><ul class="diff">`, count(len(lines)-i, "more change"))
		}
		sign, ok := signs[line[0]]
		if !ok {
			p.emit(`<li>{}</li>`+"\n", name(line))
			continue
		}
		p.emit(`<li class="` + sign[0] + `"><span class="unseen">` + sign[1] + `</span>`)
		p.emit(`<span aria-hidden="true">{}</span> {}`, line[:1], image(line[2:]))
		if refused[line] {
			p.emit(` <span class="tag old">OLM v1 refuses it</span>`)
		}
		p.emit("</li>\n")
	}
	p.emit(`</ul>`)
	if len(lines) > maxUnfolded+5 {
		p.emit(`</details>`)
	}
}

// Limits of the manifests and names that are compared, in bytes and in values: a decoded value takes some hundred bytes.
const (
	maxCompared = 6 << 20
	maxDecoded  = 300_000
	maxHad      = 20_000 // of a bundle
)

// compare returns what changes from one bundle to another, and if the manifests are not compared, why.
func (p *page) compare(v *view, from, to *readBundle) (_ *upgrade.Report, why literal, err error) {
	old, err := from.installs()
	current, err2 := to.installs()
	dropEqual(&old, &current)
	switch {
	case errors.Is(errors.Join(err, err2), fault.ErrLimit):
		why = "The manifests of one of the versions are too many to be compared here."
	case errors.Join(err, err2) != nil:
		why = "The manifests of one of the versions cannot be read."
	case len(from.manifests) == 0 || len(to.manifests) == 0:
		why = "The catalog does not have the manifests of both versions."
	case tooLarge(slices.Concat(old, current)):
		why = "The manifests that differ are too large to be compared here."
	default:
		r, err := upgrade.Compare(p.ctx, append(v.has(from.of), old...), append(v.has(to.of), current...), p.judge)
		if err == nil || p.ctx.Err() != nil {
			return r, "", err
		}
		if why = "The manifests of one of the versions cannot be compared."; errors.Is(err, fault.ErrLimit) {
			why = "The permissions are too many to be compared here."
		}
	}
	r, err := upgrade.Compare(p.ctx, v.has(from.of), v.has(to.of), nil)
	return r, why, err
}

// tooLarge reports whether manifests are not decoded to be compared.
func tooLarge(all []upgrade.Manifest) bool {
	size, values := 0, 0
	for _, m := range all {
		size, values = size+len(m.JSON), values+valuesOf(m.JSON)
	}
	return size > maxCompared || values > maxDecoded
}

// valuesOf returns how many values a JSON text has at most.
func valuesOf(text []byte) (n int) {
	for _, before := range []string{"{", "[", ","} {
		n += bytes.Count(text, []byte(before))
	}
	return n
}

// judged says what OLM v1 refuses of the changes of definitions.
func (p *page) judged(r *upgrade.Report, why literal, from, to *declcfg.Bundle) {
	refused := 0
	for _, d := range r.Definitions {
		refused += min(len(d.Refusals), 1)
	}
	switch {
	case refused > 0:
		p.emit(`<li class="no">OLM v1 refuses the changes of <a href="#definitions">{}</a>.</li>`+"\n", count(refused, "definition"))
		return
	case why == "" && (p.judge != nil || len(r.Definitions) == 0):
		return
	case why == "":
		why = "This server does not judge whether OLM v1 refuses the changes of definitions."
	}
	p.emit(`<li>`+why+` This compares permissions and definitions, and says what OLM v1 refuses:
<code><span class="whole">bindery diff --manifests</span> {} {}</code></li>`+"\n", image(from.Image), image(to.Image))
}

// permissionChanges shows what the operator may do in addition, and no longer.
func (p *page) permissionChanges(accounts []upgrade.Account) {
	for _, part := range []struct {
		title, id literal
		of        func(upgrade.Account) []upgrade.PermissionChange
	}{
		{"New permissions", "gained", func(a upgrade.Account) []upgrade.PermissionChange { return a.Gained }},
		{"Removed permissions", "lost", func(a upgrade.Account) []upgrade.PermissionChange { return a.Lost }},
	} {
		if all := duties(accounts, part.of); len(all) > 0 {
			p.emit(`<section aria-labelledby="` + part.id + `"><h2 id="` + part.id + `">` + part.title + `</h2>`)
			p.writeDuties(all)
			p.emit("</section>\n")
		}
	}
}

// dropEqual takes out what both sides have with the same bytes, but for roles, which are compared together.
func dropEqual(old, current *[]upgrade.Manifest) {
	texts := map[upgrade.Object][]byte{}
	for _, m := range *old {
		texts[m.Object] = m.JSON
	}
	same := map[upgrade.Object]bool{}
	for _, m := range *current {
		same[m.Object] = m.Group != rbacGroup && bytes.Equal(texts[m.Object], m.JSON)
	}
	drop := func(m upgrade.Manifest) bool { return same[m.Object] }
	*old, *current = slices.DeleteFunc(*old, drop), slices.DeleteFunc(*current, drop)
}

// definitionChanges shows what changes in CustomResourceDefinitions, and what OLM v1 refuses of that.
func (p *page) definitionChanges(r *upgrade.Report) {
	if len(r.Definitions) == 0 {
		return
	}
	p.emit(`<section aria-labelledby="definitions"><h2 id="definitions">Definitions</h2>` + "\n")
	for i := range r.Definitions {
		if i == maxRows || !p.hasSpace() {
			p.emit(`<p>{} more definitions are not shown.</p>`, strconv.Itoa(len(r.Definitions)-i))
			break
		}
		p.definitionChange(&r.Definitions[i])
	}
	p.emit("</section>\n")
}

func (p *page) definitionChange(d *upgrade.DefinitionChange) {
	p.emit(`<h3>{}</h3>`, name(d.Name))
	if d.NotJudged != "" {
		p.emit(`<p class="notice">It is not known whether OLM v1 refuses the upgrade: {}</p>`, lines(clip(d.NotJudged, 1000)))
	}
	refused := map[string]bool{}
	var texts []string
	outer := "" // a field that is new or gone, for whose own fields that goes without saying
	for _, l := range d.Lines() {
		text := l.Text
		below, ok := strings.CutPrefix(text, outer)
		switch {
		case outer != "" && ok && below != "" && strings.ContainsAny(below[:1], ".[{"):
			continue
		case l.Depth == 1 && strings.HasPrefix(text, "~ "):
			text = strings.TrimPrefix(text, "~ ") + ":" // the lines that follow are about it
		case strings.HasPrefix(text, "- field "), strings.HasPrefix(text, "+ field "):
			outer = text
		}
		texts = append(texts, text)
		refused[text] = refused[text] || l.Refused
	}
	if len(d.Refusals) > 0 {
		p.emit(`<div class="warning" role="note"><strong>OLM v1 refuses the upgrade:</strong> `)
		if len(d.Refusals) > 3 {
			p.emit(`<details><summary>{}</summary>`, count(len(d.Refusals), "change")+" that it refuses")
		}
		for i, c := range d.Refusals {
			if i == 40 {
				p.emit(`<span class="line">and {} more</span>`, strconv.Itoa(len(d.Refusals)-i))
				break
			}
			p.emit(`<span class="line">{}</span>`, lines(clip(c.Sentence(), 600)))
		}
		if len(d.Refusals) > 3 {
			p.emit(`</details>`)
		}
		p.emit("</div>\n")
	}
	p.diffLines(texts, refused)
}

// objectChanges lists the changes of all other objects, but for roles: what they allow is compared.
func (p *page) objectChanges(r *upgrade.Report) {
	var there, fields []string
	for sign, objects := range map[string][]upgrade.Object{"+ ": r.Added, "- ": r.Removed} {
		for _, o := range objects {
			if o.Group != rbacGroup {
				there = append(there, sign+o.String())
			}
		}
	}
	slices.SortFunc(there, func(a, b string) int { return cmp.Or(cmp.Compare(a[2:], b[2:]), cmp.Compare(a, b)) })
	for _, c := range r.Changed {
		for _, f := range c.Fields {
			if c.Group != rbacGroup {
				fields = append(fields, fmt.Sprint("~ ", c.Object, ": ", f))
			}
		}
	}
	p.emit(`<section aria-labelledby="contents"><h2 id="contents">Added and removed</h2>`)
	p.diffLines(there, nil)
	p.emit("</section>\n")
	if len(fields) > 0 {
		p.emit(`<section aria-labelledby="fields"><h2 id="fields">Changed fields of other objects</h2>`)
		p.diffLines(fields, nil)
		p.emit("</section>\n")
	}
}
