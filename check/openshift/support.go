package openshift

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/internal/apiserver"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Support says which versions of OpenShift take a bundle.
type Support struct {
	Package string `json:"package,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	// Text is one line: the versions that take the bundle, and why the others do not.
	Text string `json:"text"`
	// Versions are those for which there is an index, in ascending order.
	Versions []Acceptance `json:"versions"`
	// Max is the value of the property olm.maxOpenShiftVersion: a cluster of this version or a later one on which the
	// bundle is installed does not update to its next minor version. It is empty if the bundle has none.
	Max string `json:"maxOpenShiftVersion,omitempty"`
}

// Compare orders by package and bundle.
func (s Support) Compare(o Support) int {
	return cmp.Or(cmp.Compare(s.Package, o.Package), cmp.Compare(s.Bundle, o.Bundle))
}

// Acceptance says whether a version of OpenShift takes a bundle.
type Acceptance struct {
	Version Version `json:"version"`
	// Kubernetes is the version in it; absent if it is not known, and then what depends on it is not judged.
	Kubernetes Kubernetes `json:"kubernetes,omitempty"`
	Accepted   bool       `json:"accepted"`
	// Reasons say why not; empty if Accepted.
	Reasons []string `json:"reasons,omitempty"`
	// Notes say what else counts: the first patch release that takes the bundle, or that it prevents updates.
	Notes []string `json:"notes,omitempty"`
}

const propertyMax = "olm.maxOpenShiftVersion"

// maxReason limits the bytes of a reason or a note, maxReasons how many a version has.
const maxReason, maxReasons = 300, 20

// judge finds for one version why it refuses a bundle, and what else counts.
type judge func(v Version, k Kubernetes, reason, note func(format string, args ...any))

// Of says which of the indices' versions take a bundle: by the annotation [Annotation], spec.minKubeVersion, the APIs
// that the Kubernetes of a version serves, and the kinds that its OLM v0 installs. The property olm.maxOpenShiftVersion
// refuses no version, since OLM keeps a cluster from updating by it, and does not keep a bundle from being installed.
func Of(b *bundle.Bundle, t *Table, indices []Version) Support {
	s := Support{Package: b.Package, Versions: []Acceptance{}}
	if b.CSV != nil {
		s.Bundle = b.CSV.Name
	}
	maximum, about := ofMax(b)
	s.Max = maximum
	judges := []judge{ofAnnotation(b, indices), ofMin(b), ofObjects(b), about}
	for _, v := range indices {
		a := Acceptance{Version: v}
		k, known := t.Kubernetes(v)
		a.Kubernetes = k
		add := func(to *[]string) func(string, ...any) {
			return func(format string, args ...any) {
				text := fault.Clip(fmt.Sprintf(format, args...), maxReason)
				if len(*to) < maxReasons && !slices.Contains(*to, text) {
					*to = append(*to, text)
				}
			}
		}
		reason, note := add(&a.Reasons), add(&a.Notes)
		for _, j := range judges {
			j(v, k, reason, note)
		}
		if !known {
			note("its Kubernetes is not known: add it to the rule data openshift_kubernetes")
		}
		a.Accepted = len(a.Reasons) == 0
		s.Versions = append(s.Versions, a)
	}
	s.Text = s.text()
	return s
}

// ofAnnotation judges by the annotation with the versions that a bundle is for.
func ofAnnotation(b *bundle.Bundle, indices []Version) judge {
	text := b.Annotations[Annotation]
	selected, err := Select(text, indices)
	return func(v Version, _ Kubernetes, reason, _ func(string, ...any)) {
		switch {
		case b.MediaType != bundle.RegistryV1:
			reason("OLM v0 installs no bundle of the media type %q", b.MediaType)
		case b.CSV == nil:
			reason("the bundle has no ClusterServiceVersion")
		case err != nil:
			reason("%s: %v", Annotation, err)
		case !slices.Contains(selected, v):
			reason("%s is %q", Annotation, text)
		}
	}
}

// ofMin judges by spec.minKubeVersion, which OLM reads as three numbers with or without a v.
func ofMin(b *bundle.Bundle) judge {
	var text string
	if b.CSV != nil {
		value := jsonscan.Member(b.CSV.Spec, "minKubeVersion")
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
	}
	least, err := versions.Parse(strings.TrimPrefix(text, "v"))
	return func(v Version, k Kubernetes, reason, note func(string, ...any)) {
		switch {
		case text == "" || text == "null":
		case err != nil:
			reason("spec.minKubeVersion %q is no version of three numbers, and OLM never installs the bundle", text)
		case k == 0:
		case least.Major > 1 || least.Major == 1 && least.Minor > uint64(k):
			reason("spec.minKubeVersion is %s", text)
		case least.Major == 1 && least.Minor == uint64(k) && least.Patch > 0:
			note("a release with Kubernetes %s or later is needed", least)
		}
	}
}

// ofObjects judges the kinds and APIs of the objects. OLM v0 reads the first document of each file.
func ofObjects(b *bundle.Bundle) judge {
	type api struct{ version, kind string }
	seen := map[api]bool{}
	var all []api
	for _, o := range b.Objects {
		a := api{o.APIVersion, o.Kind}
		if o.First() && o.Kind != "ClusterServiceVersion" && !seen[a] {
			seen[a] = true
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, o api) int { return cmp.Or(cmp.Compare(a.kind, o.kind), cmp.Compare(a.version, o.version)) })
	return func(v Version, k Kubernetes, reason, note func(string, ...any)) {
		for _, a := range all {
			ok, patches := installs(a.kind, v)
			if !ok {
				reason("its OLM installs no %s", a.kind)
				continue
			}
			if patches != "" {
				note("%s is installed from %s on", a.kind, patches)
			}
			if k == 0 || slices.Contains(byKind, a.kind) {
				continue
			}
			switch state, since := apiserver.Availability(a.version, a.kind, k); state {
			case apiserver.Gone:
				reason("%s %s is gone since Kubernetes %s", a.version, a.kind, since)
			case apiserver.NotYet:
				reason("%s %s is there from Kubernetes %s on", a.version, a.kind, since)
			case apiserver.Never:
				reason("%s %s is no API of Kubernetes", a.version, a.kind)
			}
		}
	}
}

// ofMax returns the property olm.maxOpenShiftVersion as written, and what it means for clusters of a version.
func ofMax(b *bundle.Bundle) (string, judge) {
	var values []string
	for _, d := range b.Declared() {
		if d.Type != propertyMax || d.Rule != bundle.RuleProperty {
			continue
		}
		var text string
		if json.Unmarshal(d.Value, &text) != nil {
			text = string(d.Value)
			if number, err := strconv.ParseFloat(text, 64); err == nil { // 4.20 is 4.2 in YAML
				text = strconv.FormatFloat(number, 'g', -1, 64)
			}
		}
		values = append(values, strings.Trim(text, `"`))
	}
	joined := fault.Clip(strings.Join(values, ", "), maxReason)
	last, err := versions.ParseTolerant(joined)
	valid := err == nil && last.Patch == 0 && len(last.Pre) == 0 && len(last.Build) == 0 && last.Major < 100 && last.Minor < 1000
	return joined, func(v Version, _ Kubernetes, _, note func(string, ...any)) {
		switch {
		case len(values) == 0:
		case len(values) > 1:
			note("as there are several properties %s, a cluster with the bundle does not update to its next minor version",
				propertyMax)
		case !valid:
			note("as %s is %q, no minor version, a cluster with the bundle does not update to its next minor version",
				propertyMax, joined)
		case release(v).Compare(release(Version{int(last.Major), int(last.Minor)})) >= 0:
			note("as %s is %s, a cluster with the bundle does not update to its next minor version", propertyMax, joined)
		}
	}
}

// release returns a version in the order of OLM, for which 4.23 and 5.0 are the same release.
func release(v Version) Version {
	if v == (Version{4, 23}) {
		return Version{5, 0}
	}
	return v
}

// text returns the line of Text.
func (s *Support) text() string {
	if len(s.Versions) == 0 {
		return "not known: there is no index"
	}
	parts := []string{cmp.Or(strings.Join(s.runs(func(a *Acceptance) bool { return a.Accepted }, false), ", "), "no version")}
	for _, list := range []func(*Acceptance) []string{
		func(a *Acceptance) []string { return a.Reasons },
		func(a *Acceptance) []string {
			if !a.Accepted {
				return nil
			}
			return a.Notes
		},
	} {
		var order []string
		for i := range s.Versions {
			for _, text := range list(&s.Versions[i]) {
				if !slices.Contains(order, text) {
					order = append(order, text)
				}
			}
		}
		for _, text := range order {
			runs := s.runs(func(a *Acceptance) bool { return slices.Contains(list(a), text) }, true)
			parts = append(parts, strings.Join(runs, ", ")+": "+text)
		}
	}
	return strings.Join(parts, "; ")
}

// runs returns the consecutive versions for which a condition is true, as "4.14" or "4.12 to 4.17"; if they are only
// some and open is set, those up to the last one as "from 4.18 on", and those from the first one as "before 4.14".
func (s *Support) runs(is func(*Acceptance) bool, open bool) (out []string) {
	n := len(s.Versions)
	for i := 0; i < n; i++ {
		if !is(&s.Versions[i]) {
			continue
		}
		first := i
		for i+1 < n && is(&s.Versions[i+1]) {
			i++
		}
		a, b := s.Versions[first].Version, s.Versions[i].Version
		switch {
		case open && first == 0 && i == n-1:
			out = append(out, "all")
		case open && i == n-1:
			out = append(out, fmt.Sprintf("from %s on", a))
		case first == i:
			out = append(out, a.String())
		case open && first == 0:
			out = append(out, fmt.Sprintf("before %s", s.Versions[i+1].Version))
		default:
			out = append(out, fmt.Sprintf("%s to %s", a, b))
		}
	}
	return out
}
