package edit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// maxSubstitutes is the maximum number of bundles that substitute for one bundle. Each skips all before it, so that the
// number of edges is quadratic.
const maxSubstitutes = 1000

// line is a bundle with its substitutes, from the bundle itself to the last of them. The bundle itself need not be in
// the package.
type line struct {
	names []string
	added bool // one of the bundles is being added
}

// substitute applies substitutions to the declared edges of added bundles and to existing channels:
//
//   - bundles that substitute for the same one form a line sorted by version, each after the one it declares to
//     substitute for;
//   - a substitute skips every bundle before it in the line;
//   - a bundle outside of the line that replaces one of the line replaces the last one;
//   - a bundle that skips one of the line also skips all after it.
//
// Edges of existing bundles change only for lines to which a bundle is added.
func (e *packageEdit) substitute(wishes map[string]declcfg.Origin, touched map[string]bool) {
	targets := e.targets(wishes)
	lines := e.lines(targets)
	if len(lines) == 0 {
		return
	}
	at := map[string]*line{}
	for _, l := range lines {
		for _, name := range l.names {
			at[name] = l
		}
	}
	for _, name := range sorted(wishes) {
		w := wishes[name]
		w.Replaces, w.Skips = e.redirect(name, w.Replaces, w.Skips, at, wishes, false)
		wishes[name] = w
	}
	for _, channelName := range e.part.channelsDefaultFirst() {
		c := e.part.channels[channelName]
		for _, name := range sorted(c.entries) {
			entry := c.entries[name]
			if entry.Replaces == "" && len(entry.Skips) == 0 {
				continue
			}
			replaces, skips := e.redirect(name, entry.Replaces, entry.Skips, at, wishes, true)
			if replaces != entry.Replaces || !slices.Equal(skips, entry.Skips) {
				entry.Replaces, entry.Skips = replaces, skips
				c.entries[name] = entry
				touched[channelName] = true
				if _, ok := e.origins[Name{e.part.name, name}]; !ok {
					e.origins[Name{e.part.name, name}] = declcfg.Origin{Replaces: replaces,
						Skips: skips, SubstitutesFor: targets[name]}
				}
			}
		}
	}
}

// targets returns what bundles substitute for.
func (e *packageEdit) targets(wishes map[string]declcfg.Origin) map[string]string {
	out := map[string]string{}
	for name, m := range e.part.bundles {
		if w, ok := wishes[name]; ok {
			out[name] = w.SubstitutesFor
		} else if o, ok := e.options.Origins[Name{e.part.name, name}]; ok {
			out[name] = o.SubstitutesFor
		} else if said := e.manifest(m.blob); said != nil {
			out[name] = said.SubstitutesFor
		}
		if out[name] == "" {
			delete(out, name)
		}
	}
	return out
}

// lines groups bundles with their substitutes.
func (e *packageEdit) lines(targets map[string]string) []*line {
	roots := map[string]string{}
	members := map[string][]string{} // by root
	for _, name := range sorted(targets) {
		path := []string{}
		on := map[string]bool{}
		at := name
		for roots[at] == "" && targets[at] != "" && !on[at] {
			on[at] = true
			path = append(path, at)
			at = targets[at]
		}
		root := roots[at]
		if on[at] {
			e.cyclic(path[slices.Index(path, at):])
			root = at
		} else if root == "" {
			root = at
		}
		for _, p := range path {
			roots[p] = root
			members[root] = append(members[root], p)
		}
	}
	var out []*line
	for _, root := range sorted(members) {
		if len(members[root]) > maxSubstitutes {
			e.found = append(e.found, found{Problem: Problem{Package: e.part.name, Bundle: root, Kind: ErrLimit,
				Message: fmt.Sprintf("%d bundles substitute for %s (limit %d)", len(members[root]), root,
					maxSubstitutes)}})
			continue
		}
		if l := e.inLine(root, members[root], targets); l != nil {
			out = append(out, l)
		}
	}
	return out
}

func (e *packageEdit) cyclic(cycle []string) {
	f := found{Problem: Problem{Package: e.part.name, Bundle: cycle[0], Kind: ErrGraph,
		Message: fmt.Sprintf("cyclic substitutesFor chain detected involving %s", strings.Join(cycle, ", "))}}
	for _, name := range cycle {
		if n := e.added(name); n != nil {
			f.culprits = append(f.culprits, n)
		}
	}
	e.found = append(e.found, f)
}

// inLine orders the substitutes of one bundle: repeatedly the lowest version of those whose target is already in the
// line.
func (e *packageEdit) inLine(root string, names []string, targets map[string]string) *line {
	children := map[string][]string{}
	for _, name := range names {
		children[targets[name]] = append(children[targets[name]], name)
	}
	l := &line{added: e.added(root) != nil}
	ready := []string{root}
	for len(ready) > 0 {
		lowest := 0
		for i := 1; i < len(ready); i++ {
			c, err := e.versionOf(ready[i]).withBuild(e.versionOf(ready[lowest]))
			if err == nil && c == 0 {
				err = fmt.Errorf(
					"cannot determine latest substitution because of duplicate versions: %s and %s both "+
						"substitute for %s", ready[lowest], ready[i], root)
			}
			if err != nil {
				f := found{Problem: Problem{Package: e.part.name, Bundle: root, Kind: ErrGraph, Message: err.Error()}}
				for _, name := range []string{ready[lowest], ready[i]} {
					if n := e.added(name); n != nil {
						f.culprits = append(f.culprits, n)
					}
				}
				e.found = append(e.found, f)
				return nil
			}
			if c < 0 {
				lowest = i
			}
		}
		name := ready[lowest]
		ready = append(slices.Delete(ready, lowest, lowest+1), children[name]...)
		delete(children, name) // a cycle cannot come here again
		l.names = append(l.names, name)
		l.added = l.added || e.added(name) != nil
	}
	return l
}

// redirect changes the edges of a bundle for the lines that they lead to. Edges of existing bundles change only for
// lines that something is added to.
func (e *packageEdit) redirect(name, replaces string, skips []string, at map[string]*line, wishes map[string]declcfg.Origin,
	wasThere bool) (string, []string) {
	own := at[name]
	active := func(l *line) bool { return l != nil && (!wasThere || l.added) }
	// A substitute that replaces one of its own line gets what that one replaced.
	for seen := 0; replaces != "" && own != nil && at[replaces] == own && active(own) && seen < len(own.names); seen++ {
		if next, ok := wishes[replaces]; ok {
			replaces = next.Replaces
		} else {
			replaces = e.firstReplaced(replaces)
		}
	}
	if l := at[replaces]; active(l) && l != own {
		if last := l.names[len(l.names)-1]; last != replaces {
			e.why.set(KindReplaces, "", name, last, last+" is the latest substitute for "+replaces)
			replaces = last
		}
	}
	out := slices.Clone(skips)
	have := map[string]bool{replaces: true, name: true, "": true}
	for _, s := range skips {
		have[s] = true
	}
	add := func(s, why string) {
		if !have[s] {
			have[s] = true
			out = append(out, s)
			e.why.set(KindSkip, "", name, s, why)
		}
	}
	if active(own) {
		for _, s := range own.names {
			if s == name {
				break
			}
			add(s, name+" substitutes for it")
		}
	}
	done := map[*line]bool{}
	for _, s := range skips {
		l := at[s]
		if !active(l) || l == own || done[l] {
			continue
		}
		done[l] = true
		behind := false
		for _, t := range l.names {
			if behind {
				add(t, "it substitutes for a bundle that is skipped")
			}
			behind = behind || have[t] && slices.Contains(skips, t)
		}
	}
	return replaces, out
}

// firstReplaced returns what a bundle replaces in the first channel where it replaces something.
func (e *packageEdit) firstReplaced(name string) string {
	for _, channel := range e.part.channelsDefaultFirst() {
		if r := e.part.channels[channel].entries[name].Replaces; r != "" {
			return r
		}
	}
	return ""
}

// versionOf returns the version of a bundle; the zero version if it is not in the package.
func (e *packageEdit) versionOf(name string) version {
	if m := e.part.bundles[name]; m != nil {
		return m.version
	}
	return version{}
}
