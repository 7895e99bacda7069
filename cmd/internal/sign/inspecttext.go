package sign

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/internal/printable"
)

// printReport prints the description of an image as tables separated by empty lines.
func printReport(p *option.Session, r *inspect.Report) error {
	var tables []list.Table
	add := func(header []string, rows ...[]string) {
		if len(rows) > 0 {
			tables = append(tables, list.Table{Header: header, Rows: rows})
		}
	}
	add([]string{"IMAGE", r.Name}, reportFacts(r)...)
	add([]string{"PLATFORM", "DIGEST", "COMPRESSION", "LAYERS", "BYTES"},
		rowsOf(r.Images, func(i inspect.Image) []string {
			return []string{i.Platform, string(i.Digest), i.Compression, strconv.Itoa(len(i.Layers)),
				strconv.FormatInt(i.Size, 10)}
		})...)
	labels := r.Images[0].Labels
	add([]string{"LABEL", "VALUE"},
		rowsOf(slices.Sorted(maps.Keys(labels)), func(k string) []string { return []string{k, labels[k]} })...)
	deep := r.Proof != nil
	header := []string{"LAYER", "KIND", "BYTES", "PACKAGES"}
	if deep {
		header = []string{"LAYER", "KIND", "BYTES", "UNCOMPRESSED", "FILES", "PACKAGES"}
	}
	add(header, rowsOf(r.Layers, func(l inspect.Layer) []string {
		row := []string{string(l.Digest), cmp.Or(l.Kind, "-"), strconv.FormatInt(l.Size, 10)}
		if deep {
			row = append(row, strconv.FormatInt(l.Uncompressed, 10), strconv.Itoa(l.Files))
		}
		return append(row, fewOf(l.Packages))
	})...)
	add([]string{"PACKAGE", "LAYER"}, rowsOf(r.Packages, func(k inspect.Package) []string {
		var in []string
		for _, d := range k.Layers {
			in = append(in, program.ShortDigest(d))
		}
		return []string{k.Name, strings.Join(in, ", ")}
	})...)
	add([]string{"CACHE", "FORMAT", "STATE", "WHY"}, rowsOf(r.Caches, func(k inspect.Cache) []string {
		why := k.Why
		if why == "" && k.State == inspect.CacheNamed {
			why = "not checked: --deep does"
		}
		return []string{k.Path, string(k.Format), string(k.State), why}
	})...)
	add([]string{"OTHER ENTRY", "TYPE", "BYTES"}, rowsOf(r.Others, func(e inspect.Entry) []string {
		return []string{string(e.Digest), cmp.Or(e.ArtifactType, e.MediaType), strconv.FormatInt(e.Size, 10)}
	})...)
	var b bytes.Buffer
	for n, t := range tables {
		if n > 0 {
			b.WriteByte('\n')
		}
		if err := t.Write(&b, printable.Cell); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	_, err := p.Stdout.Write(b.Bytes())
	return err
}

// reportFacts returns the lines about an image as a whole.
func reportFacts(r *inspect.Report) [][]string {
	first := r.Images[0]
	rows := [][]string{{"digest", string(r.Digest)}, {"type", r.MediaType},
		{"holds", strings.TrimSpace(string(r.Kind) + " " + r.Path)}}
	if r.Source != "" {
		rows = append(rows, []string{"from", r.Source})
	}
	if len(r.Packages) > 0 {
		rows = append(rows, []string{"packages", strconv.Itoa(len(r.Packages))})
	}
	rows = append(rows, []string{"bytes", strconv.FormatInt(r.Size, 10)})
	if r.Uncompressed > 0 {
		rows = append(rows, []string{"uncompressed", strconv.FormatInt(r.Uncompressed, 10)})
	}
	if first.Created != nil {
		rows = append(rows, []string{"created", first.Created.UTC().Format("2006-01-02T15:04:05Z")})
	}
	if words := slices.Concat(first.Entrypoint, first.Cmd); len(words) > 0 {
		rows = append(rows, []string{"starts", strings.Join(words, " ")})
	}
	if first.User != "" {
		rows = append(rows, []string{"user", first.User})
	}
	annotations := r.Annotations
	if len(annotations) == 0 {
		annotations = first.Annotations
	}
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		rows = append(rows, []string{"annotation", k + "=" + annotations[k]})
	}
	return rows
}

func rowsOf[T any](of []T, row func(T) []string) [][]string {
	rows := make([][]string, len(of))
	for n, v := range of {
		rows[n] = row(v)
	}
	return rows
}

// fewOf lists the first of some packages.
func fewOf(names []string) string {
	const shown = 5
	switch n := len(names); {
	case n == 0:
		return "-"
	case n > shown:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), n-shown)
	}
	return strings.Join(names, ", ")
}

// printProof prints how an image differs from its catalog.
func printProof(p *option.Session, r *inspect.Report) error {
	var b strings.Builder
	for _, d := range r.Proof.Differences {
		var where []string
		if d.Platform != "" {
			where = append(where, d.Platform)
		}
		if d.Layer != "" {
			where = append(where, "layer "+program.ShortDigest(d.Layer))
		}
		if d.Package != "" {
			where = append(where, fmt.Sprintf("package %q", d.Package))
		}
		if d.File != "" {
			where = append(where, "/"+d.File)
		}
		where = append(where, d.Message)
		fmt.Fprintf(&b, "%s: %s\n", d.About, printable.Cell(strings.Join(where, ": ")))
	}
	if r.Proof.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.Proof.More)
	}
	for _, n := range r.Proof.Notes {
		p.Log.Info(printable.Cell(n))
	}
	verdict := "same"
	if !r.Proof.Same {
		verdict = "different: " + program.Count(len(r.Proof.Differences)+r.Proof.More, "difference")
	}
	fmt.Fprintf(&b, "%s: %s read, %d of them rebuilt, %s of %s validated\n", verdict, program.Count(r.Proof.Layers, "layer"),
		r.Proof.Rebuilt, program.Count(r.Proof.Files, "file"), program.Count(r.Proof.Packages, "package"))
	_, err := p.Stdout.Write([]byte(b.String()))
	return err
}
