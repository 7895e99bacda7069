package mirror

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
)

// mirrorSummary says what a run has done, what is left out and what to do next: a line each.
func mirrorSummary(a *mirror.Account, o mirror.Options) []string {
	if a.DryRun {
		return forecastSummary(a, o)
	}
	var lines []string
	for i := range a.Releases {
		if r := &a.Releases[i]; r.Name() != "" {
			lines = append(lines, publishedLine("release "+r.Name(), r.Published, r.Present, o)+", "+
				program.Count(r.Components, "component"))
		}
	}
	if g := a.Graph; g != nil {
		lines = append(lines, publishedLine("graph image "+strings.TrimPrefix(g.Destination, "docker://"), g.Published, g.Present, o))
	}
	for _, c := range a.Catalogs {
		lines = append(lines, catalogSummary(c, o))
	}
	for i := range a.Charts {
		if c := &a.Charts[i]; c.Mirrored {
			lines = append(lines, c.Title()+": "+program.Count(c.Images, "image"))
		}
	}
	t := a.Totals
	text := fmt.Sprintf("%s: %d copied, %d there before", program.Count(t.Images, "image"), t.Copied, t.Present)
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if n := countBlocked(a); n > 0 {
		text += fmt.Sprintf(", %d blocked", n)
	}
	lines = append(lines, text+"; sent "+cmdline.FormatSize(t.Sent))
	return append(lines, nextSteps(a, o)...)
}

func forecastSummary(a *mirror.Account, o mirror.Options) []string {
	if o.PublishOnly {
		return []string{fmt.Sprintf("%s: %d are there; nothing is published in a dry run",
			program.Count(a.Totals.Images, "image"), a.Totals.Present)}
	}
	text := fmt.Sprintf("%s: %d are there, at most %s to copy with the catalogs", program.Count(a.Totals.Images, "image"), a.Totals.Present,
		cmdline.FormatSize(sumOf(a.Repositories)))
	if a.Free > 0 {
		text += fmt.Sprintf(", %s free in %s", cmdline.FormatSize(a.Free), o.Archive)
	}
	return []string{printable.Text(text + "; nothing is copied in a dry run")}
}

func sumOf(repositories []mirror.RepositoryBytes) (sum int64) {
	for _, r := range repositories {
		sum += r.Bytes
	}
	return sum
}

// repositoriesText lists the bytes of a dry run by repository.
func repositoriesText(repositories []mirror.RepositoryBytes) string {
	var b strings.Builder
	for _, r := range repositories {
		fmt.Fprintf(&b, "%s\t%s\n", r.Name, cmdline.FormatSize(r.Bytes))
	}
	return b.String()
}

// publishedLine says whether something is at the destination.
func publishedLine(name string, published, present bool, o mirror.Options) string {
	what := "published"
	switch {
	case !published && o.Shard.Count > 0:
		what = "left to \"mirror publish\""
	case !published && o.Mode == mirror.ToDisk:
		what = "not packed"
	case !published:
		what = "not published, what the registry has under this name stays"
	case o.Mode == mirror.ToDisk:
		what = "packed"
	case present:
		what = "unchanged"
	}
	return printable.Text(name + ": " + what)
}

// catalogSummary says what became of a catalog.
func catalogSummary(c mirror.CatalogAccount, o mirror.Options) string {
	bundles := map[string]bool{}
	for name, pkg := range c.Packages {
		for _, channel := range pkg.Channels {
			for _, bundle := range channel {
				bundles[name+"/"+bundle] = true
			}
		}
	}
	text := publishedLine("catalog "+strings.TrimPrefix(c.Destination, "docker://"), c.Published, c.Present, o)
	if c.Published {
		text += fmt.Sprintf(", %s, %s", program.Count(len(c.Packages), "package"), program.Count(len(bundles), "bundle"))
	}
	if n := len(c.LeftOut); n > 0 {
		text += fmt.Sprintf(", without %s", program.Count(n, "bundle"))
	}
	return printable.Text(text)
}

// Undelivered lists what was asked for and is not there, a line each, with every reason once: the warnings about it may be
// thousands of lines above. What the image set names is listed in full, as are bundles; of images that operators need the
// first. The lines are made as they are read.
func Undelivered(a *mirror.Account) iter.Seq[string] {
	return func(yield func(string) bool) {
		more := true
		add := func(format string, args ...any) {
			more = more && yield(printable.Text(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")))
		}
		for i := range a.Releases {
			switch r := &a.Releases[i]; {
			case r.Error == "" || r.Published:
			case r.Name() == "":
				add("not there: %s", r.Error)
			default:
				add("not there: release %s: %s", r.Name(), r.Error)
			}
		}
		if g := a.Graph; g != nil && g.Error != "" {
			add("not there: graph image: %s", g.Error)
		}
		for _, c := range a.Catalogs {
			for _, text := range c.Missing {
				add("not there: catalog %s: %s", c.Source, text)
			}
			if c.Error != "" && !c.Published {
				add("not there: catalog %s: %s", c.Source, c.Error)
			}
		}
		for i := range a.Charts {
			if c := &a.Charts[i]; c.Error != "" && !c.Mirrored && c.Images == 0 {
				add("not there: %s: %s", c.Title(), c.Error)
			}
		}
		const most = 20
		var first []string // of the images that operators need
		images := 0
		for _, i := range a.Images {
			switch {
			case i.Status != mirror.Failed:
			case i.Kind == mirror.Additional:
				add("not copied: %s: %s", i.Source, i.Error)
			default:
				if images++; images <= most {
					first = append(first, fmt.Sprintf("not copied: %s: %s", i.Source, i.Error))
				}
			}
		}
		for _, line := range leftOut(a) {
			add("left out: %s", line)
		}
		for _, line := range first {
			add("%s", line)
		}
		if images > most {
			add("not copied: %d more images: --account FILE has all", images-most)
		}
	}
}

// leftOut lists the bundles that catalogs lack, with the reason unless that is an image which was not copied.
func leftOut(a *mirror.Account) (lines []string) {
	if !slices.ContainsFunc(a.Catalogs, func(c mirror.CatalogAccount) bool { return len(c.LeftOut) > 0 }) {
		return nil
	}
	failed := map[string]bool{}
	for _, i := range a.Images {
		failed[strings.TrimPrefix(i.Source, "docker://")] = i.Status == mirror.Failed
	}
	for _, c := range a.Catalogs {
		for _, l := range c.LeftOut {
			name := fmt.Sprintf("bundle %s of package %s", l.Bundle, l.Package)
			if l.Version != "" {
				name += ", version " + l.Version
			}
			if l.Image != "" {
				name += ", needs " + l.Image
			}
			if !failed[l.Image] {
				name += ": " + l.Reason
			}
			lines = append(lines, name)
		}
	}
	return lines
}

func countBlocked(a *mirror.Account) int {
	n := 0
	for _, i := range a.Images {
		if i.Status == mirror.Blocked {
			n++
		}
	}
	return n
}

// nextSteps says what to do with what a run has written.
func nextSteps(a *mirror.Account, o mirror.Options) []string {
	config := o.Config
	switch {
	case o.Shard.Count > 0:
		return []string{"next: when all parts are done, \"mirror publish\" with the same image set publishes the " +
			"catalogs"}
	case o.Mode == mirror.ToDisk && len(a.Archives) > 0:
		sum := int64(0)
		for _, s := range a.Archives {
			sum += s.Bytes
		}
		carry, from := SegmentNames(a), "DIR"
		if o.PublishOnly {
			carry, from = "the archives of all parts with this one", "PARTS"
		}
		return []string{
			printable.Text(fmt.Sprintf("archive: %s in %s, %s", program.Count(len(a.Archives), "segment"), o.Archive,
				cmdline.FormatSize(sum))),
			CarryLine(carry, config, "bindery mirror run -c "+filepath.Base(config)+" --from "+from+" docker://REGISTRY[/PATH]"),
		}
	case o.Mode == mirror.ToDisk:
		return nil
	}
	if len(a.Resources) == 0 {
		return nil
	}
	return []string{printable.Text("next: tell the cluster, with oc apply -f " + filepath.Dir(a.Resources[0]))}
}

// CarryLine says what of a run crosses the gap, and which command takes it there.
func CarryLine(segments, config, command string) string {
	return printable.Text(fmt.Sprintf("next: carry %s and %s to the other side, and run there: %s", segments, config, command))
}

// SegmentNames are the names of the segments of an archive, in its directory.
func SegmentNames(a *mirror.Account) string {
	first, last := a.Archives[0].Name, a.Archives[len(a.Archives)-1].Name
	switch len(a.Archives) {
	case 1:
		return first
	case 2:
		return first + ", " + last
	}
	return first + " to " + last
}

// incompleteStatus is the error of a run that lacks something, with the list of it.
func incompleteStatus(p *option.Session, o mirror.Options, e *mirror.IncompleteError, a *mirror.Account) error {
	e.First = "" // the list has it
	return &cmdline.ExitStatus{Status: 4, Err: &cmdline.Error{Class: cmdline.Classify(e), Err: e, Hint: missingHint(p, o, e),
		List: Undelivered(a)}}
}

// mendNames says what to do about names that catalogs do not have.
func mendNames(config string) string {
	return "mend the names in " + config + ": \"list packages\", \"list channels\" and \"list bundles\" show those of a " +
		"catalog"
}

// missingHint says how what is missing is copied.
func missingHint(p *option.Session, o mirror.Options, e *mirror.IncompleteError) string {
	switch {
	case e.Damaged:
		return damagedHint
	case e.OnlyNames():
		return mendNames(o.Config)
	case o.PublishOnly:
		return "\"mirror run\" copies the images; then publish again"
	case o.Mode == mirror.FromDisk:
		return "what the archive lacks is in the archive of another run, or has to be written to one with this image set; " +
			"the same command again copies only what is missing"
	case o.DryRun:
		return "a run copies the rest; repeated, it copies only what is missing"
	}
	again := "the same command again copies only what is missing"
	if e.Missing > 0 {
		again = mendNames(o.Config) + "; " + again
	}
	if why := CauseHint(p, e); why != "" {
		return why + "; " + again
	}
	return again
}

// CauseHint says what to do about the first image that was not copied.
func CauseHint(p *option.Session, e *mirror.IncompleteError) string {
	if hint := signatureHint(e.Cause); hint != "" {
		return hint
	}
	var known *cmdline.Error
	if e.Cause == nil || !errors.As(hint.Add(p.Program, e.Cause), &known) {
		return ""
	}
	return known.Hint
}
