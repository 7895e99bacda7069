package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// The rule of the task fbc-target-index-pruning-check of https://github.com/konflux-ci/build-definitions.
var fbcPruned = Rule{ID: "fbc:pruned", Severity: Error, Profiles: konfluxOnly, Scopes: onCatalogs,
	Title: "No channel or entry of a package is missing that the released catalog has.",
	Fix:   "keep the channel and its entries, or wait for a release that may drop them"}

// mayPrune are parts of the names of channels that may lose entries.
var mayPrune = []string{"dev-preview", "pre-ga", "candidate"}

var prunedChecks = []Check[*catalogCheck]{{[]Rule{fbcPruned}, findPruned}}

// pruned runs the pruning check if there is a released catalog.
func (c *catalogCheck) pruned(ctx context.Context) error {
	if c.Released == nil {
		c.run.NotRun("needs the released catalog: say --released IMAGE", fbcPruned)
		return nil
	}
	return Each(ctx, c.run, prunedChecks, c)
}

func findPruned(_ context.Context, c *catalogCheck, emit Emit) {
	for i := range c.Released.Channels {
		ch := &c.Released.Channels[i]
		channels, both := c.channels[ch.Package]
		if !both || prunable(ch.Name) {
			continue
		}
		f := Finding{Package: ch.Package, Channel: ch.Name}
		if len(channels) > 0 {
			f.File, f.Line = channels[0].Pos.File, channels[0].Pos.Line
		}
		own := slices.IndexFunc(channels, func(o *declcfg.Channel) bool { return o.Name == ch.Name })
		if own < 0 {
			f.Message = fmt.Sprintf("the released catalog has channel %q of package %q", ch.Name, ch.Package)
			emit(f)
			continue
		}
		f.File, f.Line = channels[own].Pos.File, channels[own].Pos.Line
		for _, e := range ch.Entries {
			kept := func(o declcfg.ChannelEntry) bool { return o.Name == e.Name }
			if !slices.ContainsFunc(channels[own].Entries, kept) {
				f.Message = fmt.Sprintf("channel %q lacks the entry %q of the released catalog", ch.Name, e.Name)
				emit(f)
			}
		}
	}
}

func prunable(channel string) bool {
	return slices.ContainsFunc(mayPrune, func(part string) bool { return strings.Contains(channel, part) })
}
