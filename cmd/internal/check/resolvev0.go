package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// ResolvedV0 is the answer of "resolve --v0" in JSON.
type ResolvedV0 struct {
	Package string       `json:"package"`
	Channel string       `json:"channel"`
	Head    resolve.Step `json:"head"`
	// Installed is the name of what is installed, Path what is installed after it, and Reaches is set if that ends at
	// the head.
	Installed string         `json:"installed,omitempty"`
	Path      []resolve.Step `json:"path,omitempty"`
	Reaches   *bool          `json:"reaches,omitempty"`
	// Stuck are the entries of the channel without a way to the head, if nothing is installed.
	Stuck []resolve.Step `json:"stuck,omitempty"`
}

// resolveV0 answers for OLM v0.
func (o *resolveOptions) resolveV0(ctx context.Context, p *option.Session, catalogs []resolve.Catalog, format program.Format) error {
	for _, name := range []string{"version", "self-certified", "gate", "priority", "path", "pull", "crd-upgrade-safety"} {
		if p.Given(name) {
			return cmdline.Usagef("--%s has no effect with --v0", name)
		}
	}
	channels := o.channels.Value()
	if len(channels) > 1 || len(catalogs) > 1 {
		return cmdline.Usagef("a Subscription of OLM v0 has one channel of one catalog")
	}
	channel := ""
	if len(channels) == 1 {
		channel = channels[0]
	}
	v, err := resolve.NewV0(ctx, catalogs[0], o.pkg, channel)
	if err != nil {
		var unusable *resolve.V0Error
		if errors.As(err, &unusable) {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: o.pkg, Err: err,
				Hint: "\"bindery list channels CATALOG PACKAGE\" lists the channels, \"bindery validate\" says what " +
					"is wrong with them"}
		}
		return p.OpmMessage(err)
	}
	head, ok := v.Head()
	if !ok {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: v.Channel,
			Err: fmt.Errorf("channel %q of package %q has no bundle that can be installed", v.Channel, v.Package)}
	}
	out := &ResolvedV0{Package: v.Package, Channel: v.Channel, Head: head}
	if o.installed == "" {
		if out.Stuck, err = v.Stuck(ctx); err != nil {
			return err
		}
		return printResolvedV0(ctx, p, format, out)
	}
	installed, err := installedBundle(o.installed, v.Installed)
	if err != nil {
		return err
	}
	out.Installed, out.Path = installed.Name, v.Path(installed.Name, installed.Version)
	reaches := v.Reaches(installed.Name, out.Path)
	out.Reaches = &reaches
	if err := printResolvedV0(ctx, p, format, out); err != nil || reaches {
		return err
	}
	return &cmdline.ExitStatus{Status: 1}
}

func printResolvedV0(ctx context.Context, p *option.Session, format program.Format, r *ResolvedV0) error {
	if format.IsDocument() {
		return p.PrintValue(format, r)
	}
	rows := [][]string{{"package", r.Package}, {"channel", r.Channel},
		{"head", named(r.Head.Bundle, r.Head.Version, r.Head.Release)}, {"installed", r.Installed}}
	for _, s := range r.Path {
		rows = append(rows, []string{"then", named(s.Bundle, s.Version, s.Release)})
	}
	switch {
	case r.Reaches == nil:
	case !*r.Reaches:
		rows = append(rows, []string{"then", "no entry of the channel may follow, and this is not the head"})
	case len(r.Path) == 0:
		rows = append(rows, []string{"then", "no upgrade: this is the head"})
	}
	if r.Reaches == nil && len(r.Stuck) == 0 {
		rows = append(rows, []string{"no way to the head", "none of the entries"})
	}
	for _, s := range r.Stuck {
		rows = append(rows, []string{"no way to the head", named(s.Bundle, s.Version, s.Release)})
	}
	return printFields(ctx, p, rows)
}
