package submission

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

func findConfig(_ context.Context, c *check, emit rules.Emit) {
	if c.bad != nil {
		emit(c.bad.finding())
	}
}

func findHalves(_ context.Context, o *operatorCheck, emit rules.Emit) {
	for _, dir := range o.op.halves {
		missing := "metadata"
		if !isIn(o.fsys, dir, "manifests", true) {
			missing = "manifests"
		}
		emit(rules.Finding{Package: o.op.name, Bundle: path.Base(dir), File: dir,
			Message: fmt.Sprintf("the directory %s is missing, so that the pipeline sees no bundle here", missing)})
	}
}

func findNames(_ context.Context, o *operatorCheck, emit rules.Emit) {
	if o.op.fbc {
		return
	}
	names := map[string]bool{}
	for _, b := range o.op.bundles {
		if b.csvFault != nil {
			o.fault(b.csvFault, emit)
		} else {
			names[b.operatorName] = true
		}
	}
	if len(names) > 1 {
		emit(o.at("", fmt.Sprintf("the bundles have several names: %s",
			strings.Join(slices.Sorted(maps.Keys(names)), ", "))))
	}
}

func findUpdateGraph(_ context.Context, o *operatorCheck, emit rules.Emit) {
	if o.op.fbc {
		return
	}
	if o.op.ciFault != nil {
		o.fault(o.op.ciFault, emit)
		return
	}
	value := jsonscan.Member(o.op.ci.json, "updateGraph")
	if !isSet(value) {
		f := o.at(o.op.ciFile, "updateGraph is missing: the graph is made by "+replacesMode)
		f.Severity = rules.Warning
		emit(f)
		return
	}
	if _, bad := o.op.mode(); bad != nil {
		emit(o.at(bad.file, bad.text, "updateGraph"))
	}
}

func findLoops(ctx context.Context, o *operatorCheck, emit rules.Emit) {
	if o.op.fbc {
		return
	}
	channels, bad := o.op.channels()
	if bad != nil {
		o.fault(bad, emit)
		return
	}
	for _, channel := range channels {
		if ctx.Err() != nil {
			return
		}
		g, bad := o.op.graph(channel)
		if bad != nil {
			o.graphFault(o.op.dir, bad, emit)
			return
		}
		for _, odd := range g.odd {
			f := odd.finding()
			f.Package, f.Severity = o.op.name, rules.Warning
			emit(f)
		}
		if cycle := g.upgrades.Cycle(); len(cycle) > 0 {
			emit(o.at("", fmt.Sprintf("the upgrades of the channel %q go round: %s", channel,
				strings.Join(append(cycle, cycle[0]), " -> "))))
		}
	}
}

// graphFault emits why a graph cannot be made. What is wrong with the mode is so for each rule that needs a graph.
func (o *operatorCheck) graphFault(part string, bad *fault, emit rules.Emit) {
	if bad.file == o.op.ciFile && o.op.ciFault != nil {
		o.faultOf(part, bad, emit)
		return
	}
	f := bad.finding()
	f.Package = o.op.name
	emit(f)
}

func findCISchema(_ context.Context, o *operatorCheck, emit rules.Emit) {
	switch {
	case o.op.ciFile == "":
	case o.op.ciFault != nil:
		o.fault(o.op.ciFault, emit)
	case o.op.ciWhole.json == nil:
		f := o.at(o.op.ciFile, "the file is empty, and it is to be a mapping")
		f.Fix = "remove it, or write \"updateGraph: replaces-mode\""
		emit(f)
	default:
		d := o.op.ciWhole
		d.file = o.op.ciFile
		for _, f := range violations(schemas.ci(), d) {
			emit(o.placed(f))
		}
	}
}

// placed returns a finding about a field of a document with the place of the field.
func (o *operatorCheck) placed(f rules.Finding) rules.Finding {
	var value []any
	for step := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(f.Field), ".") {
		var index int
		if _, err := fmt.Sscanf(step, "%d", &index); err == nil && fmt.Sprint(index) == step {
			value = append(value, index)
		} else if step != "" {
			value = append(value, step)
		}
	}
	at := o.at(f.File, f.Message, value...)
	at.Field = f.Field
	if at.Line == 0 {
		at.Line = 1
	}
	return at
}

// mapping is an entry of fbc.catalog_mapping.
type mapping struct {
	template, kind string
	catalogs       []string
}

// mappings returns the entries that have their kinds; the schema reports the others.
func (o *operator) mappings() (out []mapping) {
	jsonscan.Elements(jsonscan.Member(o.ci.json, "fbc", "catalog_mapping"), func(v []byte) bool {
		m := mapping{template: jsonscan.TextAt(v, "template_name"), kind: jsonscan.TextAt(v, "type")}
		jsonscan.Elements(jsonscan.Member(v, "catalog_names"), func(name []byte) bool {
			if text, ok := jsonscan.Text(name); ok {
				m.catalogs = append(m.catalogs, text)
			}
			return true
		})
		out = append(out, m)
		return true
	})
	return out
}

func findCatalogUsage(_ context.Context, o *operatorCheck, emit rules.Emit) {
	templates := map[string][]string{}
	for _, m := range o.op.mappings() {
		for _, catalog := range m.catalogs {
			templates[catalog] = append(templates[catalog], m.template)
		}
	}
	for _, catalog := range slices.Sorted(maps.Keys(templates)) {
		if names := templates[catalog]; len(names) > 1 {
			emit(o.at(o.op.ciFile, fmt.Sprintf("the catalog %q is made of several templates: %s", catalog,
				strings.Join(names, ", ")), "fbc", "catalog_mapping"))
		}
	}
}

func findProject(_ context.Context, o *operatorCheck, emit rules.Emit) {
	switch value := jsonscan.Member(o.op.ci.json, "cert_project_id"); {
	case o.op.ciFile == "":
		f := o.at("", "there is no ci.yaml, which has the number of the certification project")
		f.File = path.Join(o.op.dir, ciFile)
		emit(f)
	case o.op.ciFault != nil:
		o.fault(o.op.ciFault, emit)
	case !isSet(value):
		emit(o.at(o.op.ciFile, "cert_project_id, the number of the certification project, is missing"))
	}
}

func findTemplates(_ context.Context, o *operatorCheck, emit rules.Emit) {
	mappings := o.op.mappings()
	if !o.op.fbc || len(mappings) == 0 {
		return
	}
	mapped := map[string]bool{}
	for _, m := range mappings {
		file := path.Join(o.op.dir, "catalog-templates", m.template)
		switch d, bad := readDocument(o.fsys, file); {
		case !strings.HasPrefix(path.Clean(file), o.op.dir+"/catalog-templates/"):
			emit(o.at(o.op.ciFile, fmt.Sprintf("the template %q is not in catalog-templates", m.template), "fbc", "catalog_mapping"))
			continue
		case bad != nil && !isIn(o.fsys, path.Dir(file), path.Base(file), false): // made with the first release
		case bad != nil:
			f := bad.finding()
			f.Package, f.Severity = o.op.name, rules.Warning
			emit(f)
		default:
			schema := cmp.Or(jsonscan.TextAt(d.json, "schema"), jsonscan.TextAt(d.json, "Schema")) // opm takes both
			if slices.Contains([]string{"olm.template.basic", "olm.semver"}, m.kind) && schema != m.kind {
				emit(o.at(file, fmt.Sprintf("the schema is %q, and ci.yaml says %q", schema, m.kind), "schema"))
			}
		}
		for _, catalog := range m.catalogs {
			mapped[catalog] = true
			if !isIn(o.fsys, catalogsDir, cmp.Or(catalog, "."), true) {
				emit(o.at(o.op.ciFile, fmt.Sprintf("there is no directory %s for the catalog", path.Join(catalogsDir, catalog)),
					"fbc", "catalog_mapping"))
			}
		}
	}
	catalogs, _ := o.catalogsOf(o.op.name) // an error is met where catalogs are checked
	for _, catalog := range catalogs {
		if !mapped[catalog] {
			emit(o.at(o.op.ciFile, fmt.Sprintf("the operator is in the catalog %q, and fbc.catalog_mapping does not name it", catalog),
				"fbc", "catalog_mapping"))
		}
	}
}
