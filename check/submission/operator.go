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
	ci        document // of ci.yaml; its value is nil if it is no mapping
	ciWhole   document // of ci.yaml, whatever it is
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

	memberOf *membership // nil: not read yet
}

// operator reads an operator with its bundles.
func (r *Repository) operator(name string) (*operator, error) {
	o := &operator{name: name, dir: path.Join(operatorsDir, name)}
	if o.ciFile = r.named(o.dir, ciFile, "ci.yml"); o.ciFile != "" {
		if o.ciWhole, o.ciFault = readDocument(r.fsys, o.ciFile); o.ciWhole.isObject() {
			o.ci = o.ciWhole
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
	b.csvName = text
	first, rest, found := strings.Cut(text, ".")
	switch {
	case !ok:
		b.csvFault = faultOf(b.csv, 1, "metadata.name is %s, and a name is text", kindOf(name))
	case !found:
		b.csvFault = faultOf(b.csv, 1, "metadata.name is %q, and a name has the form OPERATOR.vVERSION", text)
	default:
		b.operatorName, b.version = first, strings.TrimLeft(rest, "v")
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

// maxChannels limits the channels of a bundle.
const maxChannels = 200

// membership is what the annotations of a bundle say of channels.
type membership struct {
	in    map[string]bool // by the annotation of channels
	names []string        // these and the default channel, sorted
}

// membership reads the annotations. There is a channel without a name if that of channels is empty.
func (b *submitted) membership() (m membership, bad *fault) {
	if b.annotationsFault != nil {
		return m, b.annotationsFault
	}
	if b.memberOf != nil {
		return *b.memberOf, nil
	}
	m.in = map[string]bool{}
	for _, key := range []string{bundle.AnnotationChannels, bundle.AnnotationDefaultChannel} {
		value := b.annotations[key]
		text, ok := textOf(value)
		if !ok {
			return membership{}, faultOf(b.annotationsFile, 0, "%s is %s: put it in quotes", key, kindOf(value))
		}
		if key == bundle.AnnotationDefaultChannel {
			if text = strings.TrimSpace(text); text != "" {
				m.names = append(m.names, text)
			}
			continue
		}
		if strings.Count(text, ",") >= maxChannels {
			return membership{}, faultOf(b.annotationsFile, 0, "%s has more than %d channels", key, maxChannels)
		}
		for name := range strings.SplitSeq(text, ",") {
			name = strings.TrimSpace(name)
			m.in[name] = true
			m.names = append(m.names, name)
		}
	}
	slices.Sort(m.names)
	m.names = slices.Compact(m.names)
	b.memberOf = &m
	return m, nil
}

// newest returns the bundle of the highest version by spec.version or its directory, and those that cannot be read.
func (o *operator) newest() (out []*submitted) {
	var best *submitted
	version := func(b *submitted) *semver.Version {
		for _, text := range []string{plainText(b.specVersion), b.name} {
			if v, err := versions.Parse(text); err == nil {
				return &v
			}
		}
		return b.parsed
	}
	for _, b := range o.bundles {
		if b.csvFault != nil || b.annotationsFault != nil {
			out = append(out, b)
		}
		switch v := version(b); {
		case best == nil:
			best = b
		case v == nil:
		case version(best) == nil || v.GE(*version(best)):
			best = b
		}
	}
	for _, b := range []*submitted{best, last(o.bundles)} {
		if b != nil && !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// last returns the last of some bundles; nil if there is none.
func last(all []*submitted) *submitted {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// plainText returns a text; empty if the value is none.
func plainText(value []byte) string {
	text, _ := jsonscan.Text(value)
	return text
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
