package mirror

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
)

// printMirrorPlan prints a plan as text: a table for each catalog, then what is to be known about it.
func printMirrorPlan(p *option.Session, plan *mirror.Plan) error {
	return p.Spooled(context.Background(), func(w io.Writer) error {
		var chosen [][]string
		for _, r := range plan.Releases {
			chosen = append(chosen, []string{r.Version, r.Architecture, r.Image, r.Why})
		}
		if len(chosen) > 0 {
			t := list.Table{Header: []string{"RELEASE", "ARCHITECTURE", "IMAGE", "WHY"}, Rows: chosen}
			if err := t.Write(w, printable.Cell); err != nil {
				return err
			}
		}
		for i, one := range plan.Catalogs {
			if i > 0 || len(chosen) > 0 {
				fmt.Fprintln(w)
			}
			if err := printCatalogPlan(w, one); err != nil {
				return err
			}
		}
		rows := make([][]string, 0, len(plan.AdditionalImages))
		for _, image := range plan.AdditionalImages {
			to := image.Target
			if image.Blocked != "" {
				to = "blocked by " + strconv.Quote(image.Blocked)
			}
			rows = append(rows, []string{image.Name, to})
		}
		if err := printPlanTable(w, rows, "ADDITIONAL IMAGE", "AT THE DESTINATION"); err != nil {
			return err
		}
		rows = nil
		for _, c := range plan.Charts {
			for _, image := range c.Images {
				to := image.Target
				if image.Blocked != "" {
					to = "blocked by " + strconv.Quote(image.Blocked)
				}
				rows = append(rows, []string{strings.TrimPrefix(c.Title(), "chart "), image.Name, to})
			}
		}
		if err := printPlanTable(w, rows, "CHART", "IMAGE", "AT THE DESTINATION"); err != nil {
			return err
		}
		rows = nil
		for _, r := range plan.Repositories {
			rows = append(rows, []string{r.Name, cmdline.FormatSize(r.Bytes)})
		}
		if len(rows) > 0 {
			rows = append(rows, []string{"all", cmdline.FormatSize(sumOf(plan.Repositories))})
		}
		return printPlanTable(w, rows, "REPOSITORY", "SIZE")
	})
}

// printPlanTable prints a table after an empty line, unless it has no rows.
func printPlanTable(w io.Writer, rows [][]string, header ...string) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return list.Table{Header: header, Rows: rows}.Write(w, printable.Cell)
}

// printCatalogPlan prints what is kept of one catalog.
func printCatalogPlan(w io.Writer, one *mirror.CatalogPlan) error {
	bundles := 0
	for _, pkg := range one.Packages {
		bundles += len(pkg.Bundles)
	}
	line := fmt.Sprintf("catalog %s", one.Catalog)
	if one.Digest != "" {
		line += " (" + one.Digest.String() + ")"
	}
	fmt.Fprintln(w, printable.Text(fmt.Sprintf("%s: %s, %s, %s, to %s", line, program.Count(len(one.Packages), "package"),
		program.Count(bundles, "bundle"), program.Count(one.Images, "image"), one.Target)))
	if one.WholeCatalog {
		fmt.Fprintln(w, "the whole catalog is copied as it is, not rebuilt")
	}
	var rows [][]string
	for _, name := range one.Packages.Names() {
		pkg := one.Packages[name]
		for _, channel := range slices.Sorted(maps.Keys(pkg.Channels)) {
			why := one.Why[name+"/"+channel]
			if channel == pkg.DefaultChannel {
				why = strings.TrimPrefix(why+"; default channel", "; ")
			}
			rows = append(rows, []string{name, channel, entryNames(pkg.Channels[channel]), why})
		}
	}
	if len(rows) > 0 {
		t := list.Table{Header: []string{"PACKAGE", "CHANNEL", "BUNDLES", "WHY"}, Rows: rows}
		if err := t.Write(w, printable.Cell); err != nil {
			return err
		}
	}
	for _, d := range one.Dependencies {
		fmt.Fprintln(w,
			printable.Text(fmt.Sprintf("added: bundle %s of package %s, as bundle %s of package %s needs %s",
				d.Bundle, d.Package, d.ByBundle, d.ByPackage, d.Needs)))
	}
	for _, problem := range one.Problems {
		fmt.Fprintln(w, printable.Text(string(problem.Level)+": "+problem.String()))
	}
	lost := 0
	for _, l := range one.Lost {
		lost += len(l.Versions)
	}
	if lost == 0 {
		return nil
	}
	which := "this version"
	if lost > 1 {
		which = fmt.Sprintf("one of these %d versions", lost)
	}
	fmt.Fprintf(w, "\nA cluster with %s cannot upgrade to the head that is mirrored:\n", which)
	rows = rows[:0]
	for _, l := range one.Lost {
		var versions []string
		for _, v := range l.Versions {
			if v.Version == "" {
				v.Version = v.Bundle
			}
			versions = append(versions, v.Version)
		}
		rows = append(rows, []string{l.Package, l.Channel, l.Head, someOf(versions), l.Fix})
	}
	return list.Table{Header: []string{"PACKAGE", "CHANNEL", "HEAD", "VERSIONS", "FIX"},
		Rows: rows}.Write(w, printable.Cell)
}

func entryNames(entries []filter.Entry) string {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return someOf(names)
}

// someOf joins the first of many words.
func someOf(words []string) string {
	const most = 4
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}
