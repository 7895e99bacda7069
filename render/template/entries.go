package template

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/shape"
)

// blobs decodes the items of a template's list "entries". Items without text are omitted. The line of a blob's position
// is its index in the list plus one, see [substitutionAt].
func (p *parser) blobs(opm string, items []node) *declcfg.Catalog {
	var all bytes.Buffer
	starts := make([]int, len(items))
	ok := true
	for i, item := range items {
		starts[i] = all.Len()
		if len(item.raw) > 0 {
			ok = p.want(shape.Mapping, opm, item) && ok
		}
		// Canonical JSON has no line breaks, so that every item is on the line of its index.
		all.Write(item.raw)
		all.WriteByte('\n')
	}
	if !ok {
		return nil
	}
	// A reader stops at the first undecodable blob. To find the problems of others it continues after it.
	for from := 0; from < len(items) && !p.problems.Full(); ok = false {
		c, err := declcfg.Read(context.Background(), bytes.NewReader(all.Bytes()[starts[from]:]), "",
			declcfg.LoadOptions{
				Limits: declcfg.Limits{MaxDocument: p.options.Limits.MaxSize, MaxDepth: p.options.Limits.MaxDepth},
				Jobs:   1,
				UnknownField: func(at declcfg.Position, path []any, message string) {
					item := items[from+at.Line-1]
					p.lenient(slices.Concat(item.path, path), "%s", message)
				},
			})
		if err == nil && ok {
			return c
		}
		if err == nil {
			break
		}
		var invalid *declcfg.ValidationError
		if !errors.As(err, &invalid) || invalid.Problems[0].Position.Line < 1 {
			p.add(items[from].path, opm, "%v", err)
			break
		}
		at := min(from+invalid.Problems[0].Position.Line-1, len(items)-1)
		for i := range invalid.Problems {
			f := &invalid.Problems[i]
			p.addProblem(reported{Problem{Text: f.Text()}, slices.Concat(items[at].path, f.Path()), opm + f.OpmText()})
		}
		from = at + 1
	}
	return nil
}

// substitutionAt is the position of a substitution's bundle until [report.catalogProblems] determines its line: entries
// count from 1 upwards, substitutions from -1 downwards. It avoids determining the lines of thousands of valid blobs.
func substitutionAt(i int) declcfg.Position { return declcfg.Position{Line: -i - 1} }

// catalogProblems reports the problems of a catalog whose blobs are entries and substitutions.
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
		r.addProblem(reported{Problem: Problem{Text: where(found) + found.Text()}, path: path, opm: opm})
	}
}

// where names the part of the graph that a problem is about, unless its message does.
func where(p *declcfg.Problem) string {
	switch {
	case p.Rule != declcfg.RuleGraph && p.Rule != declcfg.RuleSkipRange && p.Rule != declcfg.RuleEmpty &&
		p.Rule != declcfg.RuleDefaultChannel:
		return ""
	case p.Bundle != "":
		return fmt.Sprintf("package %q, bundle %q: ", p.Package, p.Bundle)
	case p.Channel != "":
		return fmt.Sprintf("package %q, channel %q: ", p.Package, p.Channel)
	}
	return fmt.Sprintf("package %q: ", p.Package)
}
