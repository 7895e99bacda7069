package option

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/supply/publish"
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

// sourceFlags are the flags that name files and directories that a build reads.
var sourceFlags = []string{"from-index", "bundles", "directory", "file", "containerfile", "server", "selection"}

// build describes the build of an image: its input, what the command line says, and the images that were read.
func (o *Image) build(p *Session, in string) (publish.Build, error) {
	c := p.Command
	b := publish.Build{Command: strings.TrimPrefix(p.Line.Name(c.App.HelpName), c.App.HelpName+" "),
		Source: cmp.Or(in, c.Args().First()), Sources: c.Args().Slice(), Base: strings.TrimPrefix(o.BaseImage, "docker://"),
		Whole: c.Command.Name == "containerfile", Locked: o.Lock != ""}
	if o.BaseImage == "scratch" {
		b.Base = ""
	}
	b.Parameters = func() (map[string]any, error) { return o.parameters(p, b.Command) }
	b.Read = func() map[string]digest.Digest {
		if p.client == nil {
			return nil
		}
		return p.client.Opened()
	}
	for _, flag := range sourceFlags {
		switch v := c.Value(flag).(type) {
		case string:
			b.Sources = append(b.Sources, v)
		case cli.StringSlice:
			list, err := cmdline.List(v.Value())
			if err != nil {
				return b, err
			}
			b.Sources = append(b.Sources, list...)
		}
	}
	contexts, err := cmdline.Pairs("build-context", c.StringSlice("build-context"))
	for _, dir := range contexts {
		b.Sources = append(b.Sources, dir)
	}
	return b, err
}

// portable is [publish.Portable] of a value of a flag.
func portable(name string) string { return publish.Portable(program.Transports, name) }
