package option

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/provenance"
)

// parameterGroups are the categories of flags that an image depends on. Flags of the command alone have none.
var parameterGroups = []string{"", "content", "what"}

// noParameters are flags of these categories that an image does not depend on, or whose values are secret.
var noParameters = []string{"help", "secret", "image-builder", "output-dir", "overwrite", "json", "report", "verify",
	"results", "image"}

// namedOnly are flags of which only the names before "=" are written: the values may be secret.
var namedOnly = []string{"build-arg", "build-context"}

// parameters returns the parameters of a build by name, as provenance writes them: the flags that were given, and
// those whose defaults another version may have otherwise. No value has an absolute path or credentials.
func (o *Image) parameters(p *Session, command string) (map[string]any, error) {
	c, out := p.Command, map[string]any{}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		group := ""
		if g, ok := f.(cli.CategorizableFlag); ok {
			group = g.GetCategory()
		}
		always := slices.Contains([]string{"format", "compression", "max-layers"}, name)
		if !slices.Contains(parameterGroups, group) || slices.Contains(noParameters, name) ||
			!c.IsSet(name) && !always {
			continue
		}
		switch v := c.Value(name).(type) {
		case cli.StringSlice:
			list, err := listParameter(name, v.Value())
			if err != nil {
				return nil, err
			}
			if list != nil {
				out[camelCase(name)] = list
			}
		case string:
			out[camelCase(name)] = portable(v)
		case bool, int, int64, uint:
			out[camelCase(name)] = v
		default:
			out[camelCase(name)] = portable(fmt.Sprint(v))
		}
	}
	delete(out, "platform")
	// Without --platform a build is for this machine's, and an edit for those of the index.
	if strings.HasPrefix(command, "build ") || c.IsSet("platform") {
		of, err := o.parameterPlatforms(p)
		if err != nil {
			return nil, err
		}
		out["platforms"] = of
	}
	if _, ok := c.Value("cache").(cli.StringSlice); ok {
		delete(out, "cache")
		kinds, err := o.ServeCaches()
		if err != nil {
			return nil, err
		}
		out["caches"] = kinds
	}
	var arguments []string
	for _, a := range c.Args().Slice() {
		arguments = append(arguments, portable(a))
	}
	if arguments != nil {
		out["arguments"] = arguments
	}
	created, err := program.SourceDate()
	if err != nil {
		return nil, err
	}
	out["sourceDateEpoch"] = int64(0)
	if !created.IsZero() {
		out["sourceDateEpoch"] = created.Unix()
	}
	return out, nil
}

// parameterPlatforms returns the platforms that an image is for.
func (o *Image) parameterPlatforms(p *Session) ([]string, error) {
	if one, ok := p.Command.Value("platform").(string); ok {
		return []string{one}, nil
	}
	of, err := o.WrittenPlatforms()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range of {
		names = append(names, platform.Name(p))
	}
	return names, nil
}

// listParameter returns the values of a repeated flag.
func listParameter(name string, values []string) ([]string, error) {
	if name == "label" || name == "annotation" {
		pairs, err := cmdline.Pairs(name, values)
		if err != nil {
			return nil, err
		}
		var out []string
		for key, value := range pairs {
			out = append(out, key+"="+value)
		}
		slices.Sort(out)
		return out, nil
	}
	var out []string
	for _, v := range values {
		if slices.Contains(namedOnly, name) {
			v, _, _ = strings.Cut(v, "=")
			out = append(out, v)
			continue
		}
		parts, err := cmdline.List([]string{v})
		if err != nil {
			parts = []string{v}
		}
		for _, part := range parts {
			out = append(out, portable(part))
		}
	}
	return out, nil
}

// camelCase writes the name of a flag as a member of JSON: maxLayers for max-layers.
func camelCase(name string) string {
	var b strings.Builder
	for n, part := range strings.Split(name, "-") {
		if n > 0 && part != "" {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}

// portable returns a name without what belongs to this machine alone: of a path that is absolute or leads upwards only
// the last element, of a URL no credentials.
func portable(name string) string {
	name = redact.Text(name)
	if key, value, ok := strings.Cut(name, "="); ok && !strings.ContainsAny(key, `/\:`) {
		return key + "=" + portable(value) // NAME=IMAGE or NAME=DIR
	}
	for _, transport := range program.Transports {
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
			if rest = portable(drive + path); tagged {
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

// sourceFlags are the flags that name files and directories that a build reads.
var sourceFlags = []string{"from-index", "bundles", "directory", "file", "containerfile", "server", "selection"}

// buildSources returns the digests of the files and directories that a build reads: its input, those of flags, and
// those of the build contexts.
func buildSources(ctx context.Context, p *Session, in string) ([]provenance.Dependency, error) {
	c := p.Command
	names := append([]string{in}, c.Args().Slice()...)
	for _, flag := range sourceFlags {
		switch v := c.Value(flag).(type) {
		case string:
			names = append(names, v)
		case cli.StringSlice:
			list, err := cmdline.List(v.Value())
			if err != nil {
				return nil, err
			}
			names = append(names, list...)
		}
	}
	contexts, err := cmdline.Pairs("build-context", c.StringSlice("build-context"))
	if err != nil {
		return nil, err
	}
	for _, dir := range contexts {
		names = append(names, dir)
	}
	slices.Sort(names)
	var out []provenance.Dependency
	for _, name := range slices.Compact(names) {
		if name == "" || name == "-" {
			continue
		}
		d, err := sourceDigest(ctx, p, name)
		if errors.Is(err, os.ErrNotExist) {
			continue // an image, the name of a package, or an error that the build reports
		}
		if err != nil {
			return nil, fmt.Errorf("--provenance: %s: %w", name, err)
		}
		if d != "" {
			out = append(out, provenance.Dependency{Name: sourceName(name), Digest: d})
		}
	}
	return out, nil
}

// sourceName is the name of a file or directory among the dependencies.
func sourceName(path string) string { return "source:" + portable(path) }

// sourceDigest returns the digest of a file or of a tree of files; empty if the name is an image's.
func sourceDigest(ctx context.Context, p *Session, name string) (digest.Digest, error) {
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
	if kind == render.CatalogDirectory && !strings.HasSuffix(p.Command.Command.FullName(), "containerfile") {
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

// baseName returns the base image in the flags; empty if there is none.
func (o *Base) baseName() string {
	if o.BaseImage == "scratch" {
		return ""
	}
	return strings.TrimPrefix(o.BaseImage, "docker://")
}
