package submission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/versions"
)

// The files of an operator and of a bundle.
const (
	ciFile      = "ci.yaml"
	releaseFile = "release-config.yaml"
)

// operator is a directory with bundles.
type operator struct {
	name, dir string
	ci        document // of ci.yaml; its value is nil if there is none, or an empty one
	ciFile    string   // empty: there is none
	ciFault   *fault
	fbc       bool
	bundles   []*submitted // sorted
	halves    []string     // the directories that lack manifests or metadata
}

// submitted is a bundle of an operator. Of its ClusterServiceVersion it has what other bundles are compared with.
type submitted struct {
	op        *operator
	name, dir string // of its directory
	// manifests and metadata are its directories.
	manifests, metadata string

	csv      string   // the file; empty: there is none
	others   []string // further files that could be it
	csvFault *fault   // why the ClusterServiceVersion or its name cannot be used
	noObject bool     // csvFault is about the whole of it
	// csvName is the name of its object, operatorName and version are the parts of it, parsed is the version if it is a semantic one.
	csvName, operatorName, version string
	parsed                         *semver.Version

	annotations      map[string]json.RawMessage
	annotationsFile  string
	annotationsFault *fault

	specVersion, replaces, skips, minKube, skipRange json.RawMessage
	wrong                                            *fault // an edge is of the wrong kind
}

// operator reads an operator with its bundles.
func (r *Repository) operator(name string) (*operator, error) {
	o := &operator{name: name, dir: path.Join(operatorsDir, name)}
	if o.ciFile = r.named(o.dir, ciFile, "ci.yml"); o.ciFile != "" {
		if o.ci, o.ciFault = readDocument(r.fsys, o.ciFile); o.ciFault == nil && o.ci.json != nil && !o.ci.isObject() {
			o.ciFault = faultOf(o.ciFile, 1, "the file is %s and no mapping", kindOf(o.ci.json))
		}
	}
	o.fbc = string(jsonscan.Member(o.ci.json, "fbc", "enabled")) == "true"
	names, err := directories(r.fsys, o.dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		dir := path.Join(o.dir, name)
		switch {
		case isBundle(r.fsys, dir):
			b, err := r.readBundle(o, name, dir, path.Join(dir, "manifests"), path.Join(dir, "metadata"))
			if err != nil {
				return nil, err
			}
			o.bundles = append(o.bundles, b)
		case isIn(r.fsys, dir, "manifests", true), isIn(r.fsys, dir, "metadata", true):
			o.halves = append(o.halves, dir)
		}
	}
	slices.SortStableFunc(o.bundles, (*submitted).compare)
	return o, nil
}

// compare orders the bundles of an operator: by the operator's name, then those without a semantic version by text,
// then the others by version.
func (b *submitted) compare(o *submitted) int {
	byName := cmp.Compare(b.operatorName, o.operatorName)
	switch {
	case byName != 0:
		return byName
	case b.parsed != nil && o.parsed != nil:
		return cmp.Or(b.parsed.Compare(*o.parsed), cmp.Compare(b.name, o.name))
	case b.parsed != nil:
		return 1
	case o.parsed != nil:
		return -1
	}
	return cmp.Or(cmp.Compare(b.version, o.version), cmp.Compare(b.name, o.name))
}

// readBundle reads a bundle with these directories.
func (r *Repository) readBundle(o *operator, name, dir, manifests, metadata string) (*submitted, error) {
	b := &submitted{op: o, name: name, dir: dir, manifests: manifests, metadata: metadata}
	files, err := r.csvFiles(manifests)
	if err != nil {
		return nil, err
	}
	b.readAnnotations(r, metadata)
	if len(files) == 0 {
		b.noObject = true
		b.csvFault = faultOf(manifests, 0,
			"there is no ClusterServiceVersion: its file is named NAME.clusterserviceversion.yaml")
		return b, nil
	}
	b.csv, b.others = files[0], files[1:]
	d, bad := readDocument(r.fsys, b.csv)
	if bad == nil && !d.isObject() {
		bad = faultOf(b.csv, 1, "the ClusterServiceVersion is %s and no mapping", kindOf(d.json))
	}
	if bad != nil {
		b.csvFault, b.noObject = bad, true
		return b, nil
	}
	b.readCSV(d.json)
	return b, nil
}

// readCSV reads what other bundles are compared with.
func (b *submitted) readCSV(csv []byte) {
	value := func(path ...string) json.RawMessage { return slices.Clone(jsonscan.Member(csv, path...)) }
	b.specVersion, b.replaces, b.skips = value("spec", "version"), value("spec", "replaces"), value("spec", "skips")
	b.minKube, b.skipRange = value("spec", "minKubeVersion"), value("metadata", "annotations", declcfg.AnnotationSkipRange)
	name := value("metadata", "name")
	text, ok := textOf(name)
	first, rest, found := strings.Cut(text, ".")
	switch {
	case !ok:
		b.csvFault = faultOf(b.csv, 1, "metadata.name is %s, and a name is text", kindOf(name))
	case !found:
		b.csvFault = faultOf(b.csv, 1, "metadata.name is %q, and a name has the form OPERATOR.vVERSION", text)
	default:
		b.csvName, b.operatorName, b.version = text, first, strings.TrimLeft(rest, "v")
		if v, err := versions.Parse(b.version); err == nil {
			b.parsed = &v
		}
	}
	for _, edge := range []struct {
		name  string
		value json.RawMessage
	}{{"spec.replaces", b.replaces}, {"metadata.annotations[olm.skipRange]", b.skipRange}} {
		if _, ok := textOf(edge.value); !ok && b.wrong == nil {
			b.wrong = faultOf(b.csv, 1, "%s is %s, and it is to be text", edge.name, kindOf(edge.value))
		}
	}
	if b.wrong == nil && isSet(b.skips) && b.skips[0] != '[' {
		b.wrong = faultOf(b.csv, 1, "spec.skips is %s, and it is to be a list", kindOf(b.skips))
	}
}

// readAnnotations reads annotations.yaml.
func (b *submitted) readAnnotations(r *Repository, dir string) {
	if b.annotationsFile = r.named(dir, bundle.AnnotationsName, "annotations.yml"); b.annotationsFile == "" {
		return
	}
	var d document
	if d, b.annotationsFault = readDocument(r.fsys, b.annotationsFile); b.annotationsFault != nil || d.json == nil {
		return
	}
	all := jsonscan.Member(d.json, "annotations")
	switch {
	case !d.isObject():
		b.annotationsFault = faultOf(b.annotationsFile, 1, "the file is %s and no mapping", kindOf(d.json))
	case isSet(all) && all[0] != '{':
		b.annotationsFault = faultOf(b.annotationsFile, 1, "annotations is %s and no mapping", kindOf(all))
	default:
		b.annotations = map[string]json.RawMessage{}
		jsonscan.Members(all, func(key, value []byte) bool {
			b.annotations[string(key)] = slices.Clone(value)
			return true
		})
	}
}

// title names the bundle in messages.
func (b *submitted) title() string { return b.op.name + "/" + b.name }

// packageName returns the package of annotations.yaml; empty if there is none.
func (b *submitted) packageName() string {
	v := b.annotations[bundle.AnnotationPackage]
	if text, ok := textOf(v); ok {
		return text
	}
	return string(v) // a number, as text
}

// channels returns the channels and the default channel, each once and sorted. There is a channel without a name if the
// annotation is empty.
func (b *submitted) channels() (names []string, bad *fault) {
	if b.annotationsFault != nil {
		return nil, b.annotationsFault
	}
	for _, key := range []string{bundle.AnnotationChannels, bundle.AnnotationDefaultChannel} {
		value := b.annotations[key]
		text, ok := textOf(value)
		if !ok {
			return nil, faultOf(b.annotationsFile, 0, "%s is %s: put it in quotes", key, kindOf(value))
		}
		if key == bundle.AnnotationDefaultChannel {
			if text = strings.TrimSpace(text); text != "" {
				names = append(names, text)
			}
			continue
		}
		for name := range strings.SplitSeq(text, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// in reports whether the bundle is in a channel by its annotation of channels, not as the default one.
func (b *submitted) in(channel string) bool {
	text, _ := textOf(b.annotations[bundle.AnnotationChannels])
	for name := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(name) == channel {
			return true
		}
	}
	return false
}

// openshift returns the text of the annotation of OpenShift versions.
func (b *submitted) openshift() (text string, bad *fault) {
	value := b.annotations[openshift.Annotation]
	text, ok := textOf(value)
	if !ok {
		return "", faultOf(b.annotationsFile, 0, "%s is %s: put it in quotes", openshift.Annotation, kindOf(value))
	}
	return text, nil
}

// nameVersion returns the version in the name of a ClusterServiceVersion: what follows the first dot, without letters v.
func nameVersion(name string) (version string, err error) {
	_, rest, ok := strings.Cut(name, ".")
	if !ok {
		return "", fmt.Errorf("%q is no name of the form OPERATOR.vVERSION", name)
	}
	return strings.TrimLeft(rest, "v"), nil
}
