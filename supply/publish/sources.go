package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/provenance"
)

// sources returns the digests of the files and directories that a build reads.
func (b Build) sources(ctx context.Context, table transport.Table) (out []provenance.Dependency, err error) {
	names := append([]string{b.Source}, b.Sources...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name == "" || name == "-" {
			continue
		}
		d, err := b.digest(ctx, name)
		if errors.Is(err, os.ErrNotExist) {
			continue // an image, the name of a package, or an error that the build reports
		}
		if err != nil {
			return nil, fault.InField("Provenance", fmt.Errorf("%s: %w", name, err))
		}
		if d != "" {
			out = append(out, provenance.Dependency{Name: sourceName(table, name), Digest: d})
		}
	}
	return out, nil
}

// digest returns the digest of a file or of a tree of files; empty if the name is an image's.
func (b Build) digest(ctx context.Context, name string) (digest.Digest, error) {
	kind, err := render.Classify(name)
	if err == nil && kind == render.Image {
		return "", nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() {
			return "", nil
		}
		return provenance.File(ctx, os.DirFS(filepath.Dir(name)), filepath.Base(name))
	}
	root, err := declcfg.OpenDir(name)
	if err != nil {
		return "", err
	}
	var files []string
	if kind == render.CatalogDirectory && !b.Whole {
		// What .indexignore lists is no part of the catalog.
		if files, err = declcfg.Files(root); err != nil {
			return "", err
		}
		if files == nil {
			files = []string{}
		}
	}
	return provenance.Tree(ctx, root, files)
}

// sourceName is the name of a file or directory among the dependencies.
func sourceName(table transport.Table, path string) string { return "source:" + Portable(table, path) }

// dependency describes an image that was read.
func (b Build) dependency(table transport.Table, name string, d digest.Digest) provenance.Dependency {
	portable := Portable(table, name)
	out := provenance.Dependency{Name: "image:" + portable, URI: portable, Digest: d}
	switch {
	case name == b.Base:
		out.Name = "base"
	case b.Locked:
		out.Name = "lock:" + portable
	}
	return out
}

// Portable returns a name without what belongs to this machine alone: of a path that is absolute or leads upwards only
// the last element, of a URL no credentials.
func Portable(table transport.Table, name string) string {
	name = redact.Text(name)
	if key, value, ok := strings.Cut(name, "="); ok && !strings.ContainsAny(key, `/\:`) {
		return key + "=" + Portable(table, value) // NAME=IMAGE or NAME=DIR
	}
	for _, transport := range table {
		t := transport.Prefix()
		if rest, ok := strings.CutPrefix(name, t); ok && transport.Parse != nil {
			if !transport.Files {
				if at := strings.LastIndexByte(rest, ']'); at >= 0 {
					rest = rest[at+1:]
				}
				return t + rest
			}
			drive := filepath.VolumeName(rest)
			path, tag, tagged := strings.Cut(rest[len(drive):], ":")
			if rest = Portable(table, drive+path); tagged {
				rest += ":" + tag
			}
			return t + rest
		}
	}
	clean := filepath.Clean(name)
	if filepath.IsAbs(name) || name == ".." || strings.HasPrefix(clean, ".."+string(filepath.Separator)) {
		if base := filepath.Base(clean); base != ".." {
			return filepath.ToSlash(base)
		}
		return "."
	}
	if strings.HasPrefix(name, "./") || strings.HasSuffix(name, "/") && !strings.Contains(name, "://") {
		name = clean
	}
	return filepath.ToSlash(name)
}
