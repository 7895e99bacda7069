package submission

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/internal/yamllint"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

func findOperatorName(_ context.Context, c *bundleCheck, emit rules.Emit) {
	b := c.b
	pkg := b.packageName()
	switch {
	case b.annotationsFault != nil:
		emit(c.of(b.annotationsFault.finding()))
		return
	case pkg == "":
		f := c.at(b.annotationsFile, "metadata/annotations.yaml does not name the package: "+
			"operators.operatorframework.io.bundle.package.v1 is missing", "annotations")
		f.File = cmp.Or(f.File, path.Join(b.dir, "metadata/annotations.yaml"))
		emit(f)
		return
	case b.csvFault != nil:
		emit(c.of(b.csvFault.finding()))
		return
	}
	var packages, names []string
	for _, other := range c.op.bundles {
		if other == b {
			continue
		}
		if name := other.packageName(); name != "" {
			packages = append(packages, name)
		}
		if other.csvFault == nil {
			names = append(names, other.operatorName)
		}
	}
	first := len(c.op.bundles) < 2
	if !first {
		c.consistent("package", b.annotationsFile, pkg, packages, emit)
		c.consistent("name", b.csv, b.operatorName, names, emit)
	}
	for _, other := range []struct{ name, what string }{
		{b.operatorName, "the name of the ClusterServiceVersion"}, {c.op.name, "the name of the operator's directory"}} {
		if pkg == other.name || c.lone && other.name == c.op.name {
			continue
		}
		f := c.at(b.annotationsFile, fmt.Sprintf("the package is %q, and %s is %q", pkg, other.what, other.name), "annotations",
			"operators.operatorframework.io.bundle.package.v1")
		if !first || c.lone { // whether a bundle alone is the first is not known
			f.Severity = rules.Warning
		}
		emit(f)
	}
}

// consistent compares a name of the bundle with those of the others.
func (c *bundleCheck) consistent(what, file, own string, others []string, emit rules.Emit) {
	slices.Sort(others)
	others = slices.Compact(others)
	switch {
	case len(others) == 1 && others[0] != own:
		emit(c.at(file, fmt.Sprintf("the %s is %q, and in the other bundles of the operator it is %q", what, own, others[0])))
	case len(others) != 1:
		f := c.at(file, fmt.Sprintf("the %s is %q, and the other bundles of the operator have %s", what, own,
			cmp.Or(strings.Join(others, ", "), "none")))
		f.Severity = rules.Warning
		emit(f)
	}
}

func findSecondCSV(_ context.Context, c *bundleCheck, emit rules.Emit) {
	for _, file := range c.b.others {
		if c.run.Has(rules.Community) && c.read != nil && c.sdkSays(file) {
			continue
		}
		emit(c.at(file, "the ClusterServiceVersion is in "+path.Base(c.b.csv)+" already"))
	}
}

// sdkSays reports whether operator-sdk's rules find a second ClusterServiceVersion in a file.
func (c *bundleCheck) sdkSays(file string) bool {
	run := c.in(c.op.name, "", "")
	return (run.Wants(sdkRules[0]) || run.Wants(sdkRules[1])) && slices.ContainsFunc(c.read.Problems, func(p bundle.Problem) bool {
		return p.Rule == bundle.RuleCSVSecond && path.Join(c.b.dir, p.File) == file
	})
}

// inGraph reports whether the rules on upgrades judge the bundle: not that of an operator with file-based catalogs. It
// emits why it cannot be judged.
func (c *bundleCheck) inGraph(emit rules.Emit) bool {
	switch {
	case c.op.fbc:
	case c.op.ciFault != nil:
		c.fault(c.op.ciFault, emit)
	case c.b.noObject:
		c.fault(c.b.csvFault, emit)
	default:
		return true
	}
	return false
}

// channels returns the channels of the bundle and its default channel. It emits why they are not known.
func (c *bundleCheck) channels(emit rules.Emit) []string {
	m, bad := c.b.membership()
	if bad != nil {
		c.fault(bad, emit)
	}
	return m.names
}

func findDangling(_ context.Context, c *bundleCheck, emit rules.Emit) {
	if c.op.fbc {
		return
	}
	for _, channel := range c.channels(emit) {
		g, bad := c.op.graph(channel)
		if bad != nil {
			c.graphFault(c.b.dir, bad, emit)
			return
		}
		if dangling := g.dangling(); len(dangling) > 0 {
			var names []string
			for _, b := range dangling {
				names = append(names, b.name)
			}
			emit(c.at(c.b.csv, fmt.Sprintf("no upgrade of the channel %q leads from %s", channel, strings.Join(names, ", "))))
		}
	}
}

func findNotFBC(_ context.Context, c *bundleCheck, emit rules.Emit) {
	switch {
	case c.op.fbc || c.lone:
	case c.whole:
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.Contains(c.notFBC, c.op.name) {
			c.notFBC = append(c.notFBC, c.op.name)
		}
	default:
		emit(c.at("", "the operator has no file-based catalog"))
	}
}

// findNoFBC says once for a repository which operators have no file-based catalogs.
func findNoFBC(_ context.Context, c *check, emit rules.Emit) {
	emit(rules.Finding{Target: operatorsDir, Message: "operators without a file-based catalog: " + few(c.notFBC)})
}

func findVersionDirectory(_ context.Context, c *bundleCheck, emit rules.Emit) {
	if c.b.noObject {
		c.fault(c.b.csvFault, emit)
		return
	}
	version, ok := textOf(c.b.specVersion)
	if !ok {
		version = asNumber(string(c.b.specVersion))
	}
	if version != c.b.name {
		emit(c.at(c.b.csv, fmt.Sprintf("the directory is %q, and spec.version is %q", c.b.name, version), "spec", "version"))
	}
}

// asNumber returns a number as YAML's readers do, without zeros at the end: 1.10 is 1.1.
func asNumber(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.Contains(text, ".") {
		return text
	}
	if text = strconv.FormatFloat(n, 'f', -1, 64); !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// manifests returns the files of the manifests that the pipelines read, sorted.
func (c *bundleCheck) manifests() (files []string) {
	entries, err := fs.ReadDir(c.fsys, c.b.manifests)
	if err != nil {
		return nil // the bundle was read before
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".yaml" || ext == ".yml" {
			files = append(files, path.Join(c.b.manifests, e.Name()))
		}
	}
	return files
}

func findNetworkPolicy(_ context.Context, c *bundleCheck, emit rules.Emit) {
	read := c.readAlready()
	for _, file := range c.manifests() {
		if o, ok := read[file]; ok {
			if text, err := bundlefs.ReadFile(c.fsys, file); err == nil && file != c.b.csv {
				if bad := tagFault(file, text); bad != nil {
					emit(c.of(bad.finding()))
					continue
				}
			}
			if o.Kind == "NetworkPolicy" && strings.HasPrefix(o.APIVersion, "networking.k8s.io/") {
				emit(c.at(file, "the manifest is a NetworkPolicy"))
			}
			continue
		}
		d, bad := readDocument(c.fsys, file)
		if bad != nil {
			if file != c.b.csv {
				emit(c.of(bad.finding()))
			}
			continue
		}
		if jsonscan.TextAt(d.json, "kind") == "NetworkPolicy" &&
			strings.HasPrefix(jsonscan.TextAt(d.json, "apiVersion"), "networking.k8s.io/") {
			emit(c.at(file, "the manifest is a NetworkPolicy"))
		}
	}
}

// readAlready returns the objects of the manifests that are one object each, and without problems.
func (c *bundleCheck) readAlready() map[string]bundle.Object {
	out := map[string]bundle.Object{}
	if c.read == nil {
		return out
	}
	odd := map[string]bool{}
	for _, p := range c.read.Problems {
		odd[p.File] = true
	}
	for _, o := range c.read.Objects {
		odd[o.File] = odd[o.File] || !o.First()
	}
	for _, o := range c.read.Objects {
		if !odd[o.File] {
			out[path.Join(c.b.dir, o.File)] = o
		}
	}
	return out
}

// release reads release-config.yaml; its value is nil if there is none.
func (c *bundleCheck) release() (document, *fault) {
	file := c.named(c.b.dir, releaseFile)
	if file == "" {
		return document{}, nil
	}
	d, bad := readDocument(c.fsys, file)
	d.file = file
	return d, bad
}

func findRelease(_ context.Context, c *bundleCheck, emit rules.Emit) {
	d, bad := c.release()
	if bad != nil || d.json == nil {
		return // the schema says it
	}
	if !c.op.fbc {
		emit(c.at(d.file, "the operator has no file-based catalogs, which the file is for: fbc.enabled of ci.yaml is not true"))
		return
	}
	types := map[string]string{}
	for _, m := range c.op.mappings() {
		types[m.template] = m.kind
	}
	index := -1
	jsonscan.Elements(jsonscan.Member(d.json, "catalog_templates"), func(v []byte) bool {
		index++
		name, isText := jsonscan.Text(jsonscan.Member(v, "template_name"))
		kind, known := types[name]
		var names, wrong []string
		jsonscan.Elements(jsonscan.Member(v, "channels"), func(v []byte) bool {
			channel, ok := jsonscan.Text(v)
			if names = append(names, channel); ok && !slices.Contains([]string{"Fast", "Candidate", "Stable"}, channel) {
				wrong = append(wrong, channel)
			}
			return true
		})
		switch {
		case !isText: // the schema says it
		case !known:
			emit(c.at(d.file, fmt.Sprintf("the template %q is none of fbc.catalog_mapping in ci.yaml", name), "catalog_templates",
				index, "template_name"))
		case kind == "olm.semver" && len(wrong) > 0:
			emit(c.at(d.file, fmt.Sprintf("the template %q is semver, and its channels are Fast, Candidate and Stable, not %s", name,
				strings.Join(wrong, ", ")), "catalog_templates", index, "channels"))
		}
		if channel := jsonscan.TextAt(v, "defaultChannel"); channel != "" && isText && !slices.Contains(names, channel) {
			f := c.at(d.file, fmt.Sprintf("defaultChannel is %q, which is none of the channels", channel), "catalog_templates", index,
				"defaultChannel")
			f.Severity = rules.Warning
			emit(f)
		}
		return true
	})
}

func findReleaseSchema(_ context.Context, c *bundleCheck, emit rules.Emit) {
	d, bad := c.release()
	switch {
	case bad != nil:
		emit(c.of(bad.finding()))
	case d.file == "":
	case d.json == nil:
		emit(c.at(d.file, "the file is empty: remove it, or name catalog_templates"))
	default:
		for _, f := range violations(schemas.release(), d) {
			emit(c.of(c.placed(f)))
		}
	}
}

func findReplaced(_ context.Context, c *bundleCheck, emit rules.Emit) {
	b := c.b
	if !c.inGraph(emit) || !isSet(b.replaces) {
		return
	}
	name, ok := textOf(b.replaces)
	_, version, found := strings.Cut(name, ".v")
	if !found {
		_, version, found = strings.Cut(name, ".")
	}
	here := []any{"spec", "replaces"}
	switch {
	case !ok:
		emit(c.at(b.csv, "spec.replaces is "+kindOf(b.replaces)+", and it is to be text", here...))
		return
	case !found:
		emit(c.at(b.csv, fmt.Sprintf("spec.replaces is %q, and the name of a bundle has the form OPERATOR.vVERSION", name), here...))
		return
	case b.csvFault != nil:
		c.fault(b.csvFault, emit)
		return
	case version == b.version:
		emit(c.at(b.csv, "the bundle replaces itself", here...))
		return
	}
	var replaced *submitted
	var all []string
	for _, other := range c.op.bundles {
		if other.csvFault != nil {
			c.fault(other.csvFault, emit)
			return
		}
		if all = append(all, other.version); other.version == version && replaced == nil {
			replaced = other
		}
	}
	if replaced == nil {
		emit(c.at(b.csv, fmt.Sprintf("the operator has no bundle of the version %q, which is replaced; it has %s", version,
			strings.Join(all, ", ")), here...))
		return
	}
	c.sameVersions(replaced, emit)
}

// sameVersions compares the OpenShift versions of the bundle with those of the one that it replaces.
func (c *bundleCheck) sameVersions(replaced *submitted, emit rules.Emit) {
	indices := c.Versions.Indices(c.organization())
	var selected [2][]openshift.Version
	var texts [2]string
	for i, b := range []*submitted{c.b, replaced} {
		if b.annotationsFault != nil {
			c.fault(b.annotationsFault, emit)
			return
		}
		texts[i] = b.openshiftText()
	}
	if texts[0] == texts[1] {
		return
	}
	for i, b := range []*submitted{c.b, replaced} {
		var err error
		if selected[i], err = openshift.Select(texts[i], indices); err != nil {
			emit(c.at(b.annotationsFile, err.Error(), "annotations", openshift.Annotation))
			return
		}
	}
	var lacking []string
	for _, v := range selected[0] {
		if !slices.Contains(selected[1], v) {
			lacking = append(lacking, v.String())
		}
	}
	if len(lacking) > 0 {
		emit(c.at(c.b.annotationsFile, fmt.Sprintf("the bundle is for OpenShift %s too, and %s, which it replaces, is not",
			strings.Join(lacking, ", "), replaced.title()), "annotations", openshift.Annotation))
	}
}

// openshiftText returns the annotation of OpenShift versions as text, also if it is a number.
func (b *submitted) openshiftText() string {
	value := b.annotations[openshift.Annotation]
	if text, ok := textOf(value); ok {
		return text
	}
	return string(value)
}

func findPruned(_ context.Context, c *bundleCheck, emit rules.Emit) {
	if !c.inGraph(emit) || !isSet(c.b.skipRange) || len(c.b.replaces) > 0 && string(c.b.replaces) != "null" {
		return
	}
	for _, channel := range c.channels(emit) {
		n, bad := c.op.countIn(channel)
		if bad != nil {
			c.fault(bad, emit)
			return
		}
		if n != 1 {
			emit(c.at(c.b.csv, fmt.Sprintf("the channel %q has %d bundles, and only the ones that are replaced stay in the catalog",
				channel, n), "spec"))
		}
	}
}

// countIn returns how many bundles are in a channel.
func (o *operator) countIn(channel string) (n int, bad *fault) {
	for _, b := range o.bundles {
		m, bad := b.membership()
		if bad != nil {
			return 0, bad
		}
		if m.in[channel] {
			n++
		}
	}
	return n, nil
}

func findMarketplace(_ context.Context, c *bundleCheck, emit rules.Emit) {
	if c.organization() != openshift.Marketplace {
		return
	}
	if c.b.noObject {
		c.fault(c.b.csvFault, emit)
		return
	}
	for _, page := range []struct{ annotation, name string }{{"remote-workflow", "pricing"}, {"support-workflow", "support"}} {
		key := "marketplace.openshift.io/" + page.annotation
		want := "https://marketplace.redhat.com/en-us/operators/" + c.b.packageName() + "/" + page.name +
			"?utm_source=openshift_console"
		got, _ := c.value("metadata", "annotations", key).(string)
		if got != want {
			emit(c.at(c.b.csv, fmt.Sprintf("the annotation %s is %q and has to be %q", key, got, want), "metadata", "annotations", key))
		}
	}
}

func findIndices(_ context.Context, c *bundleCheck, emit rules.Emit) {
	b := c.b
	text, bad := b.openshift()
	here := cmp.Or(b.annotationsFile, path.Join(b.dir, "metadata/annotations.yaml"))
	switch {
	case b.annotationsFault != nil:
		c.fault(b.annotationsFault, emit)
	case b.packageName() == "":
		emit(c.of(rules.Finding{File: here, Message: "the annotation operators.operatorframework.io.bundle.package.v1 is missing"}))
	case bad != nil:
		c.fault(bad, emit)
	case text == "" && !c.run.Has(rules.Community):
		emit(c.of(rules.Finding{File: here, Message: "the annotation " + openshift.Annotation + " is missing"}))
	default:
		indices := c.Versions.Indices(c.organization())
		selected, err := openshift.Select(text, indices)
		switch {
		case err != nil:
			emit(c.at(b.annotationsFile, err.Error(), "annotations", openshift.Annotation))
		case len(indices) == 0:
			emit(c.of(rules.Finding{File: configFile, Message: fmt.Sprintf("there are no catalogs of the organization %q",
				c.organization())}))
		case len(selected) == 0:
			emit(c.at(b.annotationsFile, fmt.Sprintf("there is no catalog for %q: those of %s are for %s to %s", text,
				c.organization(), indices[0], indices[len(indices)-1]), "annotations", openshift.Annotation))
		}
	}
}

// maxLint is how many problems of a file are reported.
const maxLint = 20

func findLint(ctx context.Context, c *bundleCheck, emit rules.Emit) {
	find := func(file string, d fs.DirEntry, err error) error {
		ext := path.Ext(file)
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil || d.IsDir() || ext != ".yaml" && ext != ".yml" && path.Base(file) != ".yamllint":
			return nil // what cannot be read is reported by others
		}
		text, err := bundlefs.ReadFile(c.fsys, file)
		if err != nil {
			if dir := path.Dir(file); dir != c.b.manifests && dir != c.b.metadata { // where others say it
				emit(c.of(rules.Finding{File: file, Message: err.Error()}))
			}
			return nil
		}
		problems := yamllint.Lint(text)
		for _, p := range problems[:min(len(problems), maxLint)] {
			f := c.of(rules.Finding{File: file, Line: p.Line, Column: p.Column, Message: fmt.Sprintf("%s (%s)", p.Message, p.Rule)})
			if len(problems) > maxLint {
				f.Message += fmt.Sprintf("; the file has %d problems", len(problems))
			}
			emit(f)
		}
		return nil
	}
	dirs := []string{c.b.dir}
	if c.lone { // an image has more
		dirs = []string{c.b.manifests, c.b.metadata}
	}
	for _, dir := range dirs {
		_ = fs.WalkDir(c.fsys, dir, find) // its errors are those of find
	}
}
