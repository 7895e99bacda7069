package main

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed krew.yaml.tmpl
var krewTemplate string

//go:embed homebrew.rb.tmpl
var homebrewTemplate string

// download is where the files of a release are.
const download = "https://github.com/operator-bindery/bindery/releases/download/"

// asset is an archive in a manifest.
type asset struct {
	OS, Arch, URL, SHA256, Program string
}

// manifests writes the manifest of krew, "bindery.yaml", and the formula of Homebrew, "bindery.rb", with the archives
// of this release. krew has Linux, macOS and Windows, Homebrew the first two on amd64 and arm64.
func (r *release) manifests() error {
	data := struct {
		Version, Plain string
		Assets         []asset
		Brew           map[string]map[string]asset
	}{Version: r.version, Plain: strings.TrimPrefix(r.version, "v"), Brew: map[string]map[string]asset{}}
	for _, p := range r.platforms {
		suffix := ".tar.gz"
		if p.os == "windows" {
			suffix = ".zip"
		}
		name := r.name(p, suffix)
		sum, err := sha256File(filepath.Join(r.stage, name))
		if err != nil {
			return err
		}
		a := asset{OS: p.os, Arch: p.arch, URL: download + r.version + "/" + name, SHA256: sum, Program: p.program()}
		data.Assets = append(data.Assets, a)
		if p.os != "windows" && (p.arch == "amd64" || p.arch == "arm64") {
			if data.Brew[p.os] == nil {
				data.Brew[p.os] = map[string]asset{}
			}
			data.Brew[p.os][p.arch] = a
		}
	}
	if err := r.fill("bindery.yaml", krewTemplate, data); err != nil {
		return err
	}
	if len(data.Brew) == 0 {
		return nil
	}
	return r.fill("bindery.rb", homebrewTemplate, data)
}

func (r *release) fill(name, text string, data any) error {
	t, err := template.New(name).Option("missingkey=error").Parse(text)
	if err != nil {
		return err
	}
	return create(filepath.Join(r.stage, name), func(w io.Writer) error { return t.Execute(w, data) })
}

// sboms writes the bills of materials of each program.
func (r *release) sboms() error {
	tool := filepath.Join(r.scratch, "programsbom")
	if err := r.compile(here, tool, "./supply/internal/programsbom", "", "-tags="+tags); err != nil {
		return err
	}
	for _, p := range r.platforms {
		_, err := r.command(os.Environ(), tool, r.programs[p], r.version, fmt.Sprint(r.time.Unix()),
			filepath.Join(r.stage, r.name(p, ".spdx.json")), filepath.Join(r.stage, r.name(p, ".cdx.json")))
		if err != nil {
			return err
		}
	}
	return nil
}
