package catalog

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// noUndo is the way back from an edit that removed something.
const noUndo = "no command brings back what was removed: take the files from version control or from an earlier image"

// undoText returns the command that undoes an edit of the group catalog, or says that there is none; empty for other
// groups.
func undoText(p *option.Session, path string, r *change.Result) string {
	if len(p.Line.Path) != 2 || p.Line.Path[0].Name != "catalog" {
		return ""
	}
	var undo []string
	switch p.Line.Leaf().Name {
	case "add", "merge":
		undo = undoAdd(r.Account.Changes)
	case "promote":
		undo = undoPromote(r.Account)
	case "demote":
		undo = p.UndoDemote
	case "deprecate":
		undo = undoDeprecate(r.Account.Changes)
	}
	if len(undo) == 0 {
		return noUndo
	}
	for i, line := range undo {
		command, rest, _ := strings.Cut(line, " ")
		undo[i] = strings.Join([]string{p.Name, "catalog", command, quoted(path), rest}, " ")
	}
	return strings.Join(undo, " && ")
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("-_./:@+,=%",
			r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// undoAdd removes what was added, if nothing that was there has changed.
func undoAdd(changes []edit.Change) []string {
	var items []string
	fresh := map[string]bool{}
	for _, c := range changes {
		switch {
		case c.Kind == edit.KindPackage && c.Action == edit.Added:
			fresh[c.Package] = true
			items = append(items, quoted(c.Package))
		case c.Action != edit.Added && c.Kind != edit.KindHead:
			return nil
		}
	}
	for _, c := range changes {
		if c.Kind == edit.KindEntry && !fresh[c.Package] {
			items = append(items, quoted(edit.Item{Package: c.Package, Channel: c.Channel, Bundle: c.Bundle}.String()))
		}
	}
	if len(items) == 0 {
		return nil
	}
	return []string{"rm " + strings.Join(items, " ")}
}

// undoPromote gives the package its former default channel, and takes the bundles out of the channels to which they
// were added.
func undoPromote(a *edit.Account) []string {
	var undo []string
	for _, c := range a.Changes {
		if c.Kind != edit.KindDefaultChannel {
			continue
		}
		head := slices.IndexFunc(a.Facts, func(f edit.Fact) bool {
			return f.Kind == edit.KindHead && f.Package == c.Package && f.Channel == c.From
		})
		if head < 0 {
			return nil
		}
		undo = append(undo,
			"promote "+quoted(c.Package+"/"+a.Facts[head].Value)+" --channel "+quoted(c.From)+" --default")
	}
	var channels []string
	bundles := map[string][]string{} // of a channel
	for _, c := range a.Changes {
		if c.Kind != edit.KindEntry {
			continue
		}
		if bundles[c.Channel] == nil {
			channels = append(channels, c.Channel)
		}
		bundles[c.Channel] = append(bundles[c.Channel], c.Package+"/"+c.Bundle)
	}
	for len(channels) > 0 {
		// The channels with the same bundles are one command.
		same := slices.DeleteFunc(slices.Clone(channels),
			func(name string) bool { return !slices.Equal(bundles[name], bundles[channels[0]]) })
		undo = append(undo, "demote "+words(bundles[same[0]])+flagWords("channel", same))
		channels = slices.DeleteFunc(channels, func(name string) bool { return slices.Contains(same, name) })
	}
	return undo
}

// UndoDemote returns the command that promotes bundles again, the lowest first, if the packages are then what they were
// before they were demoted: the edges of a demoted bundle are computed again.
func undoDemote(before, after *declcfg.Catalog, names []edit.Name, channels []string) []string {
	versions, packages := map[edit.Name]declcfg.VersionRelease{}, map[string]bool{}
	for i := range before.Bundles {
		b := &before.Bundles[i]
		versions[edit.Name{Package: b.Package, Bundle: b.Name}], _ = b.VersionRelease()
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b edit.Name) int { return versions[a].Compare(versions[b]) })
	names = slices.Compact(names)
	for _, n := range names {
		packages[n.Package] = true
	}
	want := outline(before, packages)
	for _, asDefault := range []bool{false, true} {
		var again []edit.Promotion
		var bundles []string
		for _, n := range names {
			bundles = append(bundles, n.Package+"/"+n.Bundle)
		}
		for _, i := range inChannels(names, channels) {
			again = append(again, edit.Promotion{Package: i.Package, Bundle: i.Bundle, Channel: i.Channel,
				Default: asDefault})
		}
		got, _, err := edit.Promote(after, again)
		if err != nil || !reflect.DeepEqual(outline(got, packages), want) {
			continue
		}
		undo := "promote " + words(bundles) + flagWords("channel", channels)
		if asDefault && len(channels) > 1 {
			return nil // the flag needs one channel
		} else if asDefault {
			undo += " --default"
		}
		return []string{undo}
	}
	return nil
}

// outline returns what an edit of channels can change of packages, by name.
func outline(c *declcfg.Catalog, packages map[string]bool) map[string]any {
	all := map[string]any{}
	for _, p := range c.Packages {
		if packages[p.Name] {
			all[p.Name] = p.DefaultChannel
		}
	}
	for _, ch := range c.Channels {
		if !packages[ch.Package] {
			continue
		}
		all[ch.Package+"/"+ch.Name] = [...]any{len(ch.Properties), len(ch.Unknown)}
		for _, e := range ch.Entries {
			e.Skips = slices.Sorted(slices.Values(e.Skips))
			all[ch.Package+"/"+ch.Name+"/"+e.Name] = e
		}
	}
	for _, d := range c.Deprecations {
		if packages[d.Package] {
			all[d.Package+" deprecations"] = len(d.Entries)
		}
	}
	return all
}

// undoDeprecate removes the deprecations that were added, and writes the former messages again.
func undoDeprecate(changes []edit.Change) []string {
	var messages []string
	items := map[string]string{} // of a former message
	for _, c := range changes {
		if c.Kind != edit.KindDeprecation || strings.ContainsFunc(c.From, unicode.IsControl) {
			return nil // truncated, or a message that is no word of a line
		}
		if items[c.From] == "" {
			messages = append(messages, c.From)
		}
		switch {
		case c.Bundle != "":
			items[c.From] += " " + quoted(c.Package+"/"+c.Bundle)
		case c.Channel != "":
			items[c.From] += " --channel " + quoted(c.Package+"/"+c.Channel)
		default:
			items[c.From] += " --package " + quoted(c.Package)
		}
	}
	var undo []string
	for _, message := range messages {
		line := "deprecate" + items[message] + " --undo"
		if message != "" {
			line = "deprecate" + items[message] + " --message " + quoted(message)
		}
		undo = append(undo, line)
	}
	return undo
}

func words(list []string) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = quoted(w)
	}
	return strings.Join(out, " ")
}

// flagWords returns a flag for each value.
func flagWords(flag string, values []string) string {
	out := ""
	for _, value := range values {
		out += " --" + flag + " " + quoted(value)
	}
	return out
}
