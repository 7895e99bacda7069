package jobs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
)

// BenchmarkList migrates 50 recorded databases to directories, verified and with reports, one and two at a time, and
// then runs again with all of them done.
func BenchmarkList(b *testing.B) {
	all := recorded.All(b)
	dir := b.TempDir()
	var sources []string
	for _, name := range all.Databases(b) {
		path := all.Database(b, name)
		if _, err := (migrate.Options{}).Run(b.Context(), path, filepath.Join(dir, "try", name)); err == nil {
			sources = append(sources, path)
		}
	}
	list := func(out string) []Line {
		var text strings.Builder
		for i := range 50 {
			fmt.Fprintf(&text, "%q %q\n", sources[i%len(sources)], filepath.Join(out, fmt.Sprint(i)))
		}
		lines, err := Parse(strings.NewReader(text.String()), "list", ListOptions{Transports: transports, Image: pushed})
		if err != nil {
			b.Fatal(err)
		}
		return lines
	}
	do := func(b *testing.B, out string, jobs int) {
		outcomes, err := Run(b.Context(), list(out), Options{
			Dir: out + ".reports", Jobs: jobs, Verify: true, Settings: func(*Line) string { return "" },
			Migrate: func(ctx context.Context, t *Task) (*migrate.Report, error) {
				p, err := migrate.Options{
					Verify: true, Report: true, Render: render.Options{Jobs: max(1, 2/jobs)},
				}.Prepare(ctx, t.Source, t.Directory)
				if err != nil {
					return nil, err
				}
				if err := t.Prepared(ctx, p.Dir(), "", p.Report); err != nil {
					return nil, errors.Join(err, p.Discard())
				}
				return p.Report, p.Commit()
			},
		})
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range outcomes {
			if o.State != Done {
				b.Fatal(o.Source, o.State, o.Err)
			}
		}
	}
	for _, jobs := range []int{1, 2} {
		b.Run(fmt.Sprintf("50-databases/jobs-%d", jobs), func(b *testing.B) {
			for i := range b.N {
				do(b, filepath.Join(dir, fmt.Sprintf("out-%d-%d-%d", jobs, b.N, i)), jobs)
			}
		})
	}
	done := filepath.Join(dir, "done")
	do(b, done, 2)
	b.Run("50-databases/done-before", func(b *testing.B) {
		for range b.N {
			do(b, done, 2)
		}
	})
}
