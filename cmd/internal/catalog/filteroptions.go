package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// filterOptions select the part of a catalog to keep.
type filterOptions struct {
	EditOptions
	packages, defaultChannels cli.StringSlice
	selection                 string
	headsOnly                 bool
}

func (o *filterOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "package", Destination: &o.packages, Aliases: []string{"p"},
			Usage: "keep `NAME[:CHANNEL][@VERSIONS]`, such as etcd, etcd:alpha or 'etcd:alpha@>=0.9.0 <1.0.0'"},
		&cli.StringFlag{Name: "selection", Destination: &o.selection, Aliases: []string{"f"},
			Usage: "read the selection from the YAML or JSON `FILE`; \"-\" is standard input"},
		&cli.BoolFlag{Name: "heads-only", Destination: &o.headsOnly, Usage: "keep only the highest selected bundle of each channel"},
		&cli.StringSliceFlag{Name: "default-channel", Destination: &o.defaultChannels, Usage: "set the default channel of a package: `NAME=CHANNEL`"},
		o.PermissiveFlag(),
	}
}

// filter returns the edit that keeps what is selected.
func (o *filterOptions) filter(ctx context.Context, p *option.Session) (change.Edit, error) {
	selections, err := o.selections(ctx, p)
	if err != nil {
		return change.Edit{}, err
	}
	with := edit.FilterOptions{Permissive: o.permissive}
	scope := make([]string, len(selections))
	for i := range selections {
		scope[i] = selections[i].Package
	}
	return change.Edit{Whole: None(), Scope: scope,
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return hint.NearPackage(s.Catalog)(edit.Filter(s.Catalog, selections, with))
		}}, nil
}

// selections reads the flags.
func (o *filterOptions) selections(ctx context.Context, p *option.Session) ([]edit.Selection, error) {
	var all []edit.Selection
	if file := o.selection; file != "" {
		var err error
		if all, err = ReadSelections(p, ctx, file); err != nil {
			return nil, err
		}
	}
	texts, err := cmdline.List(o.packages.Value())
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if err := addSelection(&all, strings.TrimSpace(text)); err != nil {
			return nil, cmdline.Usagef("invalid --package value %q: %w", text, err)
		}
	}
	if len(all) == 0 {
		e := cmdline.Usagef("nothing is selected")
		e.Hint = "select packages with --package NAME or --selection FILE"
		return nil, e
	}
	defaults, err := cmdline.Pairs("default-channel", o.defaultChannels.Value())
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		i := slices.IndexFunc(all, func(s edit.Selection) bool { return s.Package == name })
		if i < 0 {
			return nil, cmdline.Usagef("--default-channel %s=%s: package %q is not selected", name, defaults[name],
				name)
		}
		all[i].DefaultChannel = defaults[name]
	}
	for i := range all {
		all[i].HeadsOnly = all[i].HeadsOnly || o.headsOnly
	}
	return all, nil
}

// addSelection adds the selection NAME[:CHANNEL][@VERSIONS]. Several selections of one package select several channels.
func addSelection(all *[]edit.Selection, text string) error {
	name, rest := text, ""
	if i := strings.IndexAny(text, ":@"); i >= 0 {
		name, rest = text[:i], text[i:]
	}
	if name == "" {
		return fmt.Errorf("expected NAME[:CHANNEL][@VERSIONS]")
	}
	i := slices.IndexFunc(*all, func(s edit.Selection) bool { return s.Package == name })
	if i < 0 {
		i = len(*all)
		*all = append(*all, edit.Selection{Package: name})
	}
	s := &(*all)[i]
	if !strings.HasPrefix(rest, ":") {
		versions := strings.TrimSpace(strings.TrimPrefix(rest, "@"))
		if rest != "" && versions == "" {
			return fmt.Errorf("no versions after the @")
		}
		if s.Versions != "" && versions != "" && s.Versions != versions {
			return fmt.Errorf("package %q is selected with the versions %q already", name, s.Versions)
		}
		s.Versions = versions
		return nil
	}
	channel := edit.ChannelSelection{Name: rest[1:]}
	if at := strings.LastIndexByte(channel.Name, '@'); at >= 0 {
		channel.Name, channel.Versions = channel.Name[:at], strings.TrimSpace(channel.Name[at+1:])
		if channel.Versions == "" {
			return fmt.Errorf("no versions after the @")
		}
	}
	if channel.Name == "" {
		return fmt.Errorf("no channel after the colon")
	}
	if slices.ContainsFunc(s.Channels, func(c edit.ChannelSelection) bool { return c.Name == channel.Name }) {
		return fmt.Errorf("channel %q of package %q is selected twice", channel.Name, name)
	}
	s.Channels = append(s.Channels, channel)
	return nil
}
