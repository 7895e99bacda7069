package web

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// How much of the examples is shown.
const (
	maxExamples    = 100
	maxExample     = 16 << 10 // bytes of one
	maxExampleText = 1 << 20  // bytes of an annotation
)

// example is an object of a kind that an operator provides, as canonical JSON.
type example struct {
	version, kind, json string
	first               bool // the operator asks for it to be created after the installation
}

// examplesOf reads the objects in an annotation: none, a list, or one.
func examplesOf(text string, first bool) (all []*example, ok bool) {
	if text == "" {
		return nil, true
	}
	list, err := canon.AppendJSON(nil, []byte(text), canon.Limits{MaxDocument: maxExampleText}, nil)
	if err == nil && list[0] == '{' {
		list = slices.Concat([]byte("["), list, []byte("]"))
	}
	ok = err == nil && list[0] == '['
	jsonscan.Elements(list, func(one []byte) bool {
		ok = ok && one[0] == '{'
		all = append(all, &example{jsonscan.TextAt(one, "apiVersion"), jsonscan.TextAt(one, "kind"), string(one), first})
		return ok && len(all) <= maxExamples
	})
	return all, ok
}

// examples shows the objects that a bundle's annotations have as examples, those of a kind together, in the order in
// which the bundle provides the kinds.
func (p *page) examples(b *declcfg.Bundle, f *csv) {
	first, readable := examplesOf(f.Annotations["operatorframework.io/initialization-resource"], true)
	all, readableToo := examplesOf(f.Annotations["alm-examples"], false)
	all = slices.DeleteFunc(all, func(e *example) bool { return len(first) > 0 && e.json == first[0].json })
	if all = slices.Concat(first, all); len(all) == 0 && readable && readableToo {
		return
	}
	rank := map[[2]string]int{}
	for i, prop := range b.Properties {
		var k property.GVK
		if prop.Type == declcfg.PropertyGVK && json.Unmarshal(prop.Value, &k) == nil {
			rank[[2]string{strings.TrimPrefix(k.Group+"/"+k.Version, "/"), k.Kind}] = i - len(b.Properties)
		}
	}
	slices.SortStableFunc(all, func(a, b *example) int {
		return cmp.Or(rank[[2]string{a.version, a.kind}]-rank[[2]string{b.version, b.kind}],
			cmp.Compare(a.kind, b.kind), cmp.Compare(a.version, b.version))
	})
	p.emit(`<section class="prose" aria-labelledby="examples"><h2 id="examples">Examples</h2>` + "\n")
	if !readable || !readableToo {
		p.emit(`<p class="faint">An annotation with examples cannot be read.</p>` + "\n")
	}
	for i, e := range all {
		if i == maxExamples || !p.hasSpace() {
			p.emit(`<p>More examples are not shown.</p>`)
			break
		}
		if i == 0 || e.kind != all[i-1].kind || e.version != all[i-1].version {
			p.emit(`<h3>{} <span class="id">{}</span></h3>`+"\n", name(e.kind), optional(e.version))
		}
		title := name(cmp.Or(jsonscan.TextAt([]byte(e.json), "metadata", "name"), e.kind))
		p.emit(`<details><summary><code>{}</code>`, title)
		if e.first {
			p.emit(` <span class="tag main">to be created after the installation</span>`)
		}
		p.emit(`</summary>`)
		text, left := cutLines(manifestText([]byte(e.json)), maxExample, maxLines)
		p.snippet(title, "Example "+title, text+"\n")
		p.left(left, "byte")
		p.emit("</details>\n")
	}
	p.emit("</section>\n")
}
