package catalog

import (
	"slices"
	"strings"
	"unicode"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// noUndo is the way back from an edit that removed something.
const noUndo = "no command brings back what was removed: take the files from version control or from an earlier image"

// undoText returns the command that undoes an edit of the group catalog, or says that there is none; empty for other
// groups.
func (o *EditOptions) undoText(p *option.Session, path string, r *change.Result) string {
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
		undo = o.undo
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

// undoDemote writes promotions as a command.
func undoDemote(again []edit.Promotion) []string {
	if len(again) == 0 {
		return nil
	}
	var bundles, channels []string
	for _, p := range again {
		if name := p.Package + "/" + p.Bundle; !slices.Contains(bundles, name) {
			bundles = append(bundles, name)
		}
		if !slices.Contains(channels, p.Channel) {
			channels = append(channels, p.Channel)
		}
	}
	undo := "promote " + words(bundles) + flagWords("channel", channels)
	if again[0].Default && len(channels) > 1 {
		return nil // the flag needs one channel
	} else if again[0].Default {
		undo += " --default"
	}
	return []string{undo}
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
