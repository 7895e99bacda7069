package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// entries reads the blobs in a template's list "entries". The line of a blob's position is its index in the list plus
// one, until [report.placeOf] replaces it.
func (p *parser) entries(opm string, list node, limits Limits) *declcfg.Catalog {
	if !p.want("array", opm, list) {
		return nil
	}
	return p.blobs(opm, list, list.items(), limits)
}

// blobs reads the items of a list as blobs, all at once or, if that fails, one by one for their problems. Items without
// text are left out.
func (p *parser) blobs(opm string, list node, items []node, limits Limits) *declcfg.Catalog {
	var all bytes.Buffer
	ok := true
	for _, item := range items {
		if len(item.raw) > 0 {
			ok = p.want("object", opm, item) && ok
		}
		// Canonical JSON has no line breaks, so that every item is on the line of its index.
		all.Write(item.raw)
		all.WriteByte('\n')
	}
	if !ok {
		return nil
	}
	read := func(text []byte) (*declcfg.Catalog, error) {
		return declcfg.Read(context.Background(), bytes.NewReader(text), "", declcfg.LoadOptions{
			Limits: declcfg.Limits{MaxDocument: limits.MaxSize, MaxDepth: limits.MaxDepth}, Jobs: 1,
		})
	}
	c, err := read(all.Bytes())
	if err == nil {
		return c
	}
	for _, item := range items {
		if len(item.raw) == 0 {
			continue
		}
		_, err := read(item.raw)
		var invalid *declcfg.ValidationError
		if errors.As(err, &invalid) {
			for _, problem := range invalid.Problems {
				p.add(item.path, opm, "%s", problem.Text())
			}
		} else if err != nil {
			p.add(item.path, opm, "%v", err)
		}
	}
	if len(p.problems) == 0 {
		p.add(list.path, opm, "%v", err)
	}
	return nil
}

// placed says where in the template a blob is written, in the line of its position: entries count from 1 upwards,
// substitutions from -1 downwards. It keeps positions of thousands of blobs from being looked up for nothing.
func placed(list string, i int) declcfg.Position {
	if list == "substitutions" {
		i = -i - 2
	}
	return declcfg.Position{Line: i + 1}
}

// catalogProblems reports what is wrong with a catalog whose blobs are placed.
func (r *report) catalogProblems(entries, substitutions []any, opm string, err error) {
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		r.add(entries, opm, "%v", err)
		return
	}
	opm += invalid.OpmMessage()
	for i := range invalid.Problems {
		found := &invalid.Problems[i]
		path := entries
		switch line := found.Position.Line; {
		case line > 0:
			path = append(entries[:len(entries):len(entries)], line-1)
		case line < 0:
			path = append(substitutions[:len(substitutions):len(substitutions)], -line-1)
		}
		r.addProblem(problem{Problem: Problem{Message: where(found) + found.Text()}, path: path, opm: opm})
	}
}

// where names the node of the graph that a problem is about, unless its message does.
func where(p *declcfg.Problem) string {
	switch {
	case p.Rule != declcfg.RuleGraph && p.Rule != declcfg.RuleSkipRange && p.Rule != declcfg.RuleEmpty && p.Rule != declcfg.RuleDefaultChannel:
		return ""
	case p.Bundle != "":
		return fmt.Sprintf("package %q, bundle %q: ", p.Package, p.Bundle)
	case p.Channel != "":
		return fmt.Sprintf("package %q, channel %q: ", p.Package, p.Channel)
	}
	return fmt.Sprintf("package %q: ", p.Package)
}
