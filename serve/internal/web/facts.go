package web

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// csv has the displayed fields of a bundle's ClusterServiceVersion.
type csv struct {
	property.CSVMetadata
}

// csvOf reads them from either of the places where a catalog may have them. Undecodable parts are not shown.
func csvOf(b *declcfg.Bundle) csv { return csvFrom(b, b.CSV) }

// csvFrom is csvOf with a function that returns the manifest.
func csvFrom(b *declcfg.Bundle, manifest func() (json.RawMessage, error)) csv {
	var out csv
	for _, p := range b.Properties {
		if p.Type == declcfg.PropertyCSVMetadata {
			_ = json.Unmarshal(p.Value, &out.CSVMetadata)
			return out
		}
	}
	object, err := manifest()
	if err != nil || len(object) == 0 {
		return out
	}
	if metadata, _ := property.CSVMetadataOf(object); metadata != nil {
		out.CSVMetadata = *metadata
	}
	return out
}

// levels are the capability levels of operators, the lowest first.
var levels = []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}

// level returns the capability level, 1 to 5; zero if there is none of the known ones.
func (f *csv) level() int {
	said := strings.ToLower(strings.Join(strings.Fields(f.Annotations["capabilities"]), " "))
	return 1 + slices.IndexFunc(levels, func(l string) bool { return strings.ToLower(l) == said })
}

// split returns the elements of a text with commas.
func split(s string) []string {
	var out []string
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.Join(strings.Fields(one), " "); one != "" {
			out = append(out, one)
		}
	}
	return out
}

func (f *csv) modes() []string {
	var out []string
	for _, m := range f.InstallModes {
		if m.Supported && !slices.Contains(out, m.Type) {
			out = append(out, m.Type)
		}
	}
	return out
}

// featureNames are the readable names of annotations features.operators.openshift.io/NAME, and of the elements of the
// older operators.openshift.io/infrastructure-features.
var featureNames = map[string]string{
	"disconnected": "Disconnected", "fips-compliant": "FIPS", "fips": "FIPS", "proxy-aware": "Proxy-aware",
	"cnf": "CNF",
	"cni": "CNI", "csi": "CSI", "tls-profiles": "TLS profiles", "single-node": "Single node",
	"token-auth-aws": "Token auth (AWS)", "token-auth-azure": "Token auth (Azure)",
	"token-auth-gcp": "Token auth (GCP)",
}

// features returns the infrastructure features of an operator.
func (f *csv) features() []string {
	var out []string
	add := func(key string) {
		if name := featureNames[strings.ToLower(strings.TrimSpace(key))]; name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for key, value := range f.Annotations {
		if feature, ok := strings.CutPrefix(key, "features.operators.openshift.io/"); ok && value == "true" {
			add(feature)
		}
	}
	for _, one := range split(strings.Trim(f.Annotations["operators.openshift.io/infrastructure-features"], " []")) {
		add(strings.Trim(one, `"' `))
	}
	slices.Sort(out)
	return out
}

// created returns when the bundle was made; ok is false if that is not known.
func (f *csv) created() (time.Time, bool) { return date(f.Annotations["createdAt"]) }

// date reads the dates that occur in catalogs. Of a date with slashes that begins with the month or the day, the first
// number is the month: those that can be only one of both are all such.
func date(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00",
		"2006-01-02 15:04:05",
		time.DateOnly, "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006/01/02", "1/2/2006", time.RFC1123,
		time.RFC1123Z,
		"2006-01-02 15:04:05 -0700 MST", time.UnixDate} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1970 && t.Year() < 10_000 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// licence returns the licence that the annotations name.
func (f *csv) licence() string {
	for _, key := range []string{"license", "licenses", "licence", "org.opencontainers.image.licenses",
		"operatorhub.io/license"} {
		if s := strings.TrimSpace(f.Annotations[key]); s != "" {
			return s
		}
	}
	return ""
}

// time shows a date as a person writes it.
func (p *page) time(t time.Time) {
	p.emit(`<time datetime="{}">{}</time>`, t.Format(time.DateOnly), t.Format("2 January 2006"))
}

// csvFacts shows values of a ClusterServiceVersion.
func (p *page) csvFacts(f *csv) {
	text := func(label, value string) {
		if value = strings.TrimSpace(value); value != "" {
			p.fact(label, func() { p.emit("{}", name(value)) })
		}
	}
	if level := f.level(); level > 0 {
		p.fact("Capability level", func() { p.level(level) })
	} else {
		text("Capability level", f.Annotations["capabilities"])
	}
	if provider := strings.TrimSpace(f.Provider.Name); provider != "" {
		p.fact("Provider", func() { p.a(p.to("./", "provider", provider), name(provider)) })
	}
	if at, ok := f.created(); ok {
		p.fact("Created", func() { p.time(at) })
	} else {
		text("Created", f.Annotations["createdAt"])
	}
	if all := split(f.Annotations["categories"]); len(all) > 0 {
		p.fact("Categories", func() {
			for i, one := range all[:min(len(all), 20)] {
				if i > 0 {
					p.emit(", ")
				}
				p.a(p.to("./", "category", one), name(one))
			}
		})
	}
	text("Licence", f.licence())
	text("Maturity", f.Maturity)
	text("Kubernetes at least", f.MinKubeVersion)
	text("Install modes", strings.Join(f.modes(), ", "))
	text("Features", strings.Join(f.features(), ", "))
	text("Support", f.Annotations["support"])
	if ref := strings.TrimSpace(f.Annotations["containerImage"]); ref != "" {
		p.fact("Container image", func() { p.imageFact(ref) })
	}
	p.linkFacts(f)
	text("Keywords", strings.Join(f.Keywords, ", "))
}

// imageFact shows the reference of an image; the page's script adds a button that copies it.
func (p *page) imageFact(ref string) {
	if ref == "" {
		p.emit("none")
		return
	}
	p.emit(`<code class="image">{}</code>`, image(ref))
}

// level shows a capability level: its place on the scale, and its name.
func (p *page) level(level int) {
	p.emit(`<span class="level">`)
	p.bars(level)
	p.emit(`{}</span>`, levels[level-1])
}

// bars shows the place of a capability level on the scale.
func (p *page) bars(level int) {
	p.emit(`<span class="bars l{}" aria-hidden="true"><i></i><i></i><i></i><i></i><i></i></span>`, strconv.Itoa(level))
}

// maxFacts is how many links and maintainers are shown.
const maxFacts = 20

// linkFacts shows the repository, the links and the maintainers.
func (p *page) linkFacts(f *csv) {
	if repository := webURL(f.Annotations["repository"]); repository != "" {
		p.fact("Repository", func() { p.outside(repository, strings.TrimPrefix(repository, "https://")) })
	}
	links := slices.DeleteFunc(slices.Clone(f.Links), func(l property.AppLink) bool { return webURL(l.URL) == "" })
	if links = links[:min(len(links), maxFacts)]; len(links) > 0 {
		p.fact("Links", func() {
			for _, l := range links {
				p.emit(`<span class="line">`)
				p.outside(webURL(l.URL), cmp.Or(strings.TrimSpace(l.Name), l.URL))
				p.emit(`</span>`)
			}
		})
	}
	if len(f.Maintainers) > 0 {
		p.fact("Maintainers", func() {
			for _, m := range f.Maintainers[:min(len(f.Maintainers), maxFacts)] {
				p.emit(`<span class="line">{}`, optional(strings.TrimSpace(m.Name)))
				if m.Email != "" {
					p.emit(` <span class="faint">{}</span>`, name(strings.TrimSpace(m.Email)))
				}
				p.emit(`</span>`)
			}
		})
	}
}

// outside shows a link to another place.
func (p *page) outside(address, text string) {
	p.emit(`<a href="{}" rel="nofollow noopener noreferrer external">{}</a>`, address, name(text))
}
