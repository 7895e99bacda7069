package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/internal/change"
)

// noUndo is the way back from an edit that removed something.
const noUndo = "no command brings back what was removed: take the files from version control or from an earlier image"

// undoText returns the command that undoes an edit of the group catalog, or says that there is none; empty for other
// groups.
func (p *program) undoText(c *cli.Context, path string, r *change.Result) string {
	if len(p.line.Path) != 2 || p.line.Path[0].Name != "catalog" {
		return ""
	}
	undo := ""
	switch p.line.Leaf().Name {
	case "add", "merge":
		undo = undoAdd(r.Account.Changes)
	case "promote":
		undo = undoPromote(c, r.Account.Changes)
	case "demote":
		undo = undoDemote(r.Account.Changes)
	case "deprecate":
		undo = undoDeprecate(c, r.Account.Changes)
	}
	if undo == "" {
		return noUndo
	}
	command, rest, _ := strings.Cut(undo, " ")
	return strings.Join([]string{p.name, "catalog", command, quoted(path), rest}, " ")
}

// quoted returns a word as a shell reads it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("-_./:@+,=%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// undoAdd removes what was added, if nothing that was there has changed.
func undoAdd(changes []edit.Change) string {
	var items []string
	fresh := map[string]bool{}
	for _, c := range changes {
		switch {
		case c.Kind == edit.KindPackage && c.Action == edit.Added:
			fresh[c.Package] = true
			items = append(items, quoted(c.Package))
		case c.Action != edit.Added && c.Kind != edit.KindHead:
			return ""
		}
	}
	for _, c := range changes {
		if c.Kind == edit.KindEntry && !fresh[c.Package] {
			items = append(items, quoted(edit.Item{Package: c.Package, Channel: c.Channel, Bundle: c.Bundle}.String()))
		}
	}
	if len(items) == 0 {
		return ""
	}
	return "rm " + strings.Join(items, " ")
}

// undoPromote takes the bundles out of the channels again, unless the default channel has changed.
func undoPromote(c *cli.Context, changes []edit.Change) string {
	if slices.ContainsFunc(changes, func(c edit.Change) bool { return c.Kind == edit.KindDefaultChannel }) {
		for _, change := range changes {
			if change.Kind == edit.KindDefaultChannel && change.From != "" {
				return fmt.Sprintf("promote BUNDLE --channel %s --default, with a bundle of that channel, then \"catalog demote\"",
					quoted(change.From))
			}
		}
		return ""
	}
	return "demote " + words(c.Args().Tail()) + channelWords(changes)
}

// undoDemote promotes the bundles again, if they were the heads of their channels.
func undoDemote(changes []edit.Change) string {
	var bundles []string
	for _, c := range changes {
		if c.Kind != edit.KindEntry || c.Action != edit.Removed {
			continue
		}
		head := slices.ContainsFunc(changes, func(h edit.Change) bool {
			return h.Kind == edit.KindHead && h.Package == c.Package && h.Channel == c.Channel && h.From == c.Bundle
		})
		if !head {
			return ""
		}
		bundles = append(bundles, c.Package+"/"+c.Bundle)
	}
	slices.Sort(bundles)
	return "promote " + words(slices.Compact(bundles)) + channelWords(changes)
}

// undoDeprecate removes the deprecations, or writes the former messages again.
func undoDeprecate(c *cli.Context, changes []edit.Change) string {
	message, from := "", map[string]bool{}
	for _, c := range changes {
		if c.Kind != edit.KindDeprecation {
			return "" // truncated
		}
		from[c.From] = true
		message = c.From
	}
	if len(from) > 1 {
		return ""
	}
	undo := strings.TrimSuffix("deprecate "+words(c.Args().Tail()), " ")
	for _, flag := range []string{"channel", "package"} {
		for _, value := range c.StringSlice(flag) {
			undo += " --" + flag + " " + quoted(value)
		}
	}
	if message == "" {
		return undo + " --undo"
	}
	return undo + " --message " + quoted(message)
}

func words(list []string) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = quoted(w)
	}
	return strings.Join(out, " ")
}

// channelWords returns the flags for the channels whose entries an edit changed.
func channelWords(changes []edit.Change) string {
	var names []string
	for _, c := range changes {
		if c.Kind == edit.KindEntry && !slices.Contains(names, c.Channel) {
			names = append(names, c.Channel)
		}
	}
	out := ""
	for _, name := range names {
		out += " --channel " + quoted(name)
	}
	return out
}
