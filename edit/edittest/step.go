package edittest

import (
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// Known is additional input of a step, see edit.AddOptions.
type Known struct {
	Origins   edit.Origins
	Manifests edit.Manifests
}

// Step is one command of a recorded sequence.
type Step struct {
	// Packages returns the packages that bundles are added to.
	Packages func(testing.TB) []string
	Do       func(testing.TB, *declcfg.Catalog, Known) (*declcfg.Catalog, *edit.Account, error)
	// Stranded is set for the command that removes bundles in no channel.
	Stranded bool
	Fail     string // a part of the error's text
	Kind     error
	Exit     int // opm's exit status, if it fails
}

// Sequence is the list of steps that made a recorded database. One with a From field starts with opm's graph of that
// database.
type Sequence struct {
	Database string
	From     string // a recorded database; empty for an empty catalog
	Steps    []Step
	Why      string                              // why opm's database differs
	Compare  func(theirs, ours *declcfg.Catalog) // removes the expected differences
	Objects  bool                                // compare manifests
	Contains []string                            // additional lines that our catalog must have, as Show formats it
}

func add(o edit.AddOptions, lists ...string) Step { return addRefs(o, Refs(lists...)) }

func addRefs(o edit.AddOptions, images []string) Step {
	list := func(t testing.TB) []edit.Addition {
		var list []edit.Addition
		for _, image := range images {
			list = append(list, RecordedAddition(t, image))
		}
		return list
	}
	return Step{
		Packages: func(t testing.TB) []string {
			var names []string
			for _, a := range list(t) {
				names = append(names, a.Bundle.Package)
			}
			return names
		},
		Do: func(t testing.TB, c *declcfg.Catalog, k Known) (*declcfg.Catalog, *edit.Account, error) {
			o := o
			o.Origins, o.Manifests = k.Origins, k.Manifests
			return edit.Add(c, list(t), o)
		},
	}
}

// each adds bundles one by one.
func each(o edit.AddOptions, lists ...string) []Step {
	var out []Step
	for _, ref := range Refs(lists...) {
		out = append(out, addRefs(o, []string{ref}))
	}
	return out
}

func step(do func(*declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error)) Step {
	return Step{Do: func(_ testing.TB, c *declcfg.Catalog, _ Known) (*declcfg.Catalog, *edit.Account, error) {
		return do(c)
	}}
}

func rm(packages ...string) Step {
	return step(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.Remove(c, packages, edit.RemoveOptions{})
	})
}

func prune(keep ...string) Step {
	return step(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) { return edit.Prune(c, keep) })
}

func pruneStranded() Step {
	s := step(edit.PruneStranded)
	s.Stranded = true
	return s
}

func truncate(o edit.TruncateOptions, lists ...string) Step {
	return step(func(c *declcfg.Catalog) (*declcfg.Catalog, *edit.Account, error) {
		return edit.DeprecateTruncate(c, Refs(lists...), o)
	})
}

func (s Step) fails(exit int, kind error, text string) Step {
	s.Exit, s.Kind, s.Fail = exit, kind, text
	return s
}
