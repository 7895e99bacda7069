package helmtemplate

import (
	"context"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// What the subcharts of a chart may add up to in one rendering. An alias copies a subchart with all that is in it, so a
// small archive can make much.
const (
	maxCharts       = 1000     // subcharts, by all of their names
	maxChartFiles   = 50_000   // files of all of these
	maxSource       = 64 << 20 // bytes of templates and CRDs of all of these
	maxValues       = 32 << 20 // bytes of the values of all of these, see [written]
	maxActions      = 300_000  // actions of all templates
	maxActionSource = 8 << 20  // bytes of these
)

// tally counts what one rendering has.
type tally struct {
	ctx                   context.Context
	charts, files, source int
	values                int // what charts keep of values that they import
	merged                int // what one merge of values makes
}

// add adds to one of the counts. It fails beyond most, and at the end of the context.
func (t *tally) add(count *int, n, most int, what string) error {
	if *count += n; *count > most {
		return tooMuch("with its subcharts and their aliases it has more "+what, most)
	}
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return nil
}

// addMerged counts values that are about to be copied.
func (t *tally) addMerged(v map[string]any) error {
	n, err := sized(v, written)
	if err != nil {
		return err
	}
	return t.add(&t.merged, n, maxValues, "bytes of values")
}

// addFiles counts the files of a chart and of its subcharts.
func (t *tally) addFiles(c *chart.Chart) error {
	n := 0
	for _, f := range c.Templates {
		n += len(f.Data)
	}
	for _, f := range c.Files {
		if strings.HasPrefix(f.Name, "crds/") {
			n += len(f.Data)
		}
	}
	if err := t.add(&t.source, n, maxSource, "bytes of templates"); err != nil {
		return err
	}
	if err := t.add(&t.files, len(c.Templates)+len(c.Files), maxChartFiles, "files"); err != nil {
		return err
	}
	for _, sub := range c.Dependencies() {
		if err := t.addFiles(sub); err != nil {
			return err
		}
	}
	return nil
}

// load is what the parser has made trees of, which take far more memory than their text.
type load struct{ actions, source int }

// add counts the actions of a text.
func (l *load) add(text string) error {
	for {
		_, rest, found := strings.Cut(text, "{{")
		if !found {
			return nil
		}
		end := strings.Index(rest, "}}")
		if end < 0 {
			end = len(rest)
		}
		text = rest[end:]
		if l.actions++; l.actions > maxActions {
			return tooMuch("its templates have more actions", maxActions)
		}
		if l.source += end; l.source > maxActionSource {
			return tooMuch("the actions of its templates have more bytes", maxActionSource)
		}
	}
}
