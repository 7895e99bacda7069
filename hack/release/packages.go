package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packaging is a package to make.
type packaging struct {
	p        platform
	format   string
	packager nfpm.Packager
	contents files.Contents
}

// packages writes a deb and an rpm for each processor.
func (r *release) packages() error {
	var list []packaging
	for _, p := range r.linux() {
		contents, err := r.contents(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		list = append(list, packaging{p, "deb", deb.Default, contents}, packaging{p, "rpm", rpm.DefaultRPM, contents})
	}
	return concurrently(list, r.pack)
}

func (r *release) pack(what packaging) error {
	contents := make(files.Contents, len(what.contents))
	for n, c := range what.contents {
		own, info := *c, *c.FileInfo // nfpm changes them
		own.FileInfo = &info
		contents[n] = &own
	}
	const summary = "Binds operator bundles into catalogs and catalogs into images"
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "bindery", Arch: what.p.arch, Platform: "linux", Version: r.version, Release: "1", Section: "utils",
		Priority: "optional", Maintainer: "The authors of bindery <https://github.com/operator-bindery/bindery>",
		Vendor: "operator-bindery", Homepage: "https://github.com/operator-bindery/bindery", License: "Apache-2.0",
		Description: summary +
			"\nBuilds, migrates, checks, mirrors and serves the catalogs of the Operator Lifecycle Manager.",
		MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Contents: contents, Recommends: []string{"ca-certificates"},
			RPM: nfpm.RPM{BuildHost: "localhost", Group: "Unspecified", Compression: "gzip:6",
				Packager: "operator-bindery",
				Summary:  summary},
			Deb: nfpm.Deb{Compression: "gzip"}},
	})
	if err := nfpm.PrepareForPackager(info, what.format); err != nil {
		return err
	}
	err := create(filepath.Join(r.stage, what.packager.ConventionalFileName(info)), func(w io.Writer) error {
		return what.packager.Package(info, w)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what.format, what.p, err)
	}
	return nil
}

// contents returns the files of a package. They are written to a directory first, as nfpm takes files.
func (r *release) contents(p platform) (files.Contents, error) {
	documents, err := r.documents(p)
	if err != nil {
		return nil, err
	}
	places := map[string]string{
		"LICENSE":                  "/usr/share/doc/bindery/copyright",
		"THIRD-PARTY-NOTICES.txt":  "/usr/share/doc/bindery/THIRD-PARTY-NOTICES.txt",
		"completions/bindery.bash": "/usr/share/bash-completion/completions/bindery",
		"completions/_bindery":     "/usr/share/zsh/site-functions/_bindery",
		"completions/bindery.fish": "/usr/share/fish/vendor_completions.d/bindery.fish",
	}
	dir := filepath.Join(r.scratch, "package-"+p.arch)
	out := files.Contents{
		r.content(r.programs[p], "/usr/bin/bindery", 0o755),
		{Source: "bindery", Destination: "/usr/bin/kubectl-bindery", Type: files.TypeSymlink,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", MTime: r.time}},
	}
	for _, f := range documents {
		place, text := places[f.name], f.text
		if filepath.Ext(f.name) == ".1" {
			place = "/usr/share/man/man1/" + filepath.Base(f.name) + ".gz"
			if text, err = compressed(text); err != nil {
				return nil, err
			}
		}
		if place == "" {
			continue
		}
		from := filepath.Join(dir, place)
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, text, 0o644); err != nil {
			return nil, err
		}
		out = append(out, r.content(from, place, 0o644))
	}
	return out, nil
}

func (r *release) content(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}}
}

func compressed(text []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
