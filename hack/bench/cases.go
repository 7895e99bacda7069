package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// database measures reading the index database and validating the resulting catalog.
func (b *bench) database(ctx context.Context) error {
	input := fmt.Sprintf("%s, %s MB", filepath.Base(b.in.database), mb(sizeOf(b.in.database)))
	gzip := b.gzip[b.in.database].CPU

	out := filepath.Join(b.dir, "out")
	s, err := median(ctx, b.runs,
		command{args: []string{b.bindery, "-q", "migrate", b.in.database, out, "-o", "json"}, before: removing(out)},
		command{args: []string{b.bindery, "-q", "render", b.in.database, "-o", "json"}})
	if err != nil {
		return err
	}
	b.add(row{What: "migrate -o json", Input: input, Took: s[0], Result: sizeOf(out), Ref: opmMigrate.here(gzip),
		Target: target{Times: 20, RSS: 120e6}})
	b.add(row{What: "render -o json", Input: input, Took: s[1], Ref: opmRender.here(gzip),
		Target: target{Times: 20, RSS: 120e6}})

	if err := os.Rename(out, b.in.migrated); err != nil {
		return err
	}
	if err := b.gzipOf(ctx, b.in.migrated); err != nil {
		return err
	}
	s, err = median(ctx, b.runs, command{args: []string{b.bindery, "-q", "validate", b.in.migrated}})
	if err != nil {
		return err
	}
	input = fmt.Sprintf("migrated from it, %s MB", mb(sizeOf(b.in.migrated)))
	b.add(row{What: "validate", Input: input, Took: s[0], Ref: opmValidateLarge.here(b.gzip[b.in.migrated].CPU),
		Target: target{Times: 15, RSS: 150e6}})
	return nil
}

// catalogs measures validating the published catalog.
func (b *bench) catalogs(ctx context.Context) error {
	s, err := median(ctx, b.runs, command{args: []string{b.bindery, "-q", "validate", b.in.catalog}},
		command{args: []string{b.bindery, "-q", "render", b.in.catalog, "-o", "json"}})
	if err != nil {
		return err
	}
	gzip := b.gzip[b.in.catalog].CPU
	b.add(row{What: "validate", Input: b.catalogName(), Took: s[0], Ref: opmValidate.here(gzip),
		Target: target{Times: 6, RSS: 80e6}})
	b.add(row{What: "render -o json", Input: b.catalogName(), Took: s[1], Ref: opmRenderCatalog.here(gzip)})
	return nil
}

// ceilings looks for a catalog that needs more memory than the main one.
func (b *bench) ceilings(ctx context.Context) error {
	for _, catalog := range b.in.others {
		s, err := median(ctx, 1, command{args: []string{b.bindery, "-q", "validate", catalog}},
			b.build(catalog, "gzip", bare...), b.build(catalog, "gzip"))
		if err != nil {
			return err
		}
		input := fmt.Sprintf("%s, %s MB", filepath.Base(catalog), mb(sizeOf(catalog)))
		b.add(row{What: "validate", Input: input, Took: s[0], Target: target{RSS: 80e6}})
		b.add(row{What: "build, no server, no cache", Input: input, Took: s[1], Target: target{RSS: 40e6}})
		b.add(row{What: "build, server and cache", Input: input, Took: s[2], Target: target{RSS: 40e6}})
	}
	return nil
}

func (b *bench) catalogName() string {
	return fmt.Sprintf("%s, %s MB", filepath.Base(b.in.catalog), mb(sizeOf(b.in.catalog)))
}

func removing(paths ...string) func() error {
	return func() error {
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
		return nil
	}
}

// quoted returns a shell command of quoted words.
func quoted(words ...string) string {
	var text []string
	for _, w := range words {
		text = append(text, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(text, " ")
}
