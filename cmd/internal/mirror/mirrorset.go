package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// ImageSet reads the configuration that [imageSetFlags] name, and logs the remarks about it.
func ImageSet(p *option.Session, c *cli.Context, kind imageset.Kind) (*imageset.Set, error) {
	file := c.String("config")
	if file == "" {
		return nil, cmdline.Usagef(`required flag(s) "config" not set`)
	}
	compat, err := mirrorCompat(c)
	if err != nil {
		return nil, err
	}
	set, err := imageset.Read(c.Context, file, kind, imageset.Options{IgnoreUnsupported: c.Bool("ignore-unsupported"),
		Compat: compat})
	var wrong *imageset.Error
	switch {
	case errors.As(err, &wrong):
		e := &cmdline.Error{Class: cmdline.ClassInput, Object: file, Err: err}
		switch text := err.Error(); {
		case strings.Contains(text, "--ignore-unsupported"):
			e.Hint = "--ignore-unsupported mirrors the rest"
		case strings.Contains(text, `"DeleteImageSetConfiguration" is not`):
			e.Hint = "\"mirror delete\" takes this kind of configuration"
		case strings.Contains(text, `"ImageSetConfiguration" is not`):
			e.Hint = "the other commands of \"mirror\" take this kind; delete wants kind: " +
				"DeleteImageSetConfiguration with delete: in place of mirror:"
		}
		return nil, e
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf("-c FILE names %s %s", article(kind), kind)}
	case err != nil:
		return nil, err
	}
	for i := range set.Warnings {
		p.Log.Warn(set.Warnings[i].Error())
	}
	return set, nil
}

// checkTemplates reads the CatalogSources that are to be filled in. All problems are reported together.
func checkTemplates(ctx context.Context, set *imageset.Set) error {
	var errs []error
	for _, o := range set.Operators {
		if o.TargetCatalogSourceTemplate == "" {
			continue
		}
		if _, err := resources.ReadTemplate(ctx, o.TargetCatalogSourceTemplate); err != nil {
			errs = append(errs, fmt.Errorf("catalog %s: %w", o.Written, err))
		}
	}
	return errors.Join(errs...)
}

// mirrorCompat reports whether --compat oc-mirror is set.
func mirrorCompat(c *cli.Context) (bool, error) {
	switch v := c.String("compat"); v {
	case "":
		return false, nil
	case "oc-mirror":
		return true, nil
	default:
		return false, cmdline.Usagef("invalid --compat value %q, expected (oc-mirror)", v)
	}
}

// FilterPolicy returns the options that [filterPolicyFlags] and --installed set.
func FilterPolicy(p *option.Session, c *cli.Context) (filter.Options, error) {
	compat, err := mirrorCompat(c)
	o := filter.Options{Dependencies: c.Bool("with-dependencies"), Strict: c.Bool("strict"),
		AutoDefaultChannel: c.Bool("auto-default-channel"), Compat: compat}
	if err != nil {
		return o, err
	}
	for _, text := range c.StringSlice("installed") {
		for _, pair := range strings.Split(text, ",") {
			name, version, ok := strings.Cut(pair, "=")
			if !ok || name == "" || version == "" {
				return o, cmdline.Usagef("invalid --installed value %q, expected PACKAGE=VERSION", pair)
			}
			o.Installed = append(o.Installed, filter.Installed{Package: name, Version: version})
		}
	}
	return o, nil
}

// catalogSources returns the catalogs to be read in place of those in a configuration, by the reference as it is
// written there: the values of --catalog.
func catalogSources(c *cli.Context, set *imageset.Set) (map[string]string, error) {
	var known []string
	for _, o := range set.Operators {
		known = append(known, o.Written)
	}
	out := map[string]string{}
	for _, text := range c.StringSlice("catalog") {
		ref, source, ok := strings.Cut(text, "=")
		if !ok || ref == "" || source == "" {
			return nil, cmdline.Usagef("invalid --catalog value %q, expected REF=SOURCE", text)
		}
		found := false
		for _, o := range set.Operators {
			if ref == o.Written || strings.TrimPrefix(ref, "docker://") == o.Catalog.Name() {
				out[o.Written], found = source, true
			}
		}
		if !found {
			e := cmdline.Usagef("--catalog %s: the configuration does not name this catalog", ref)
			if near, ok := nearest.Name(ref, known); ok {
				e.Hint = fmt.Sprintf("perhaps %s", near)
			}
			return nil, e
		}
	}
	return out, nil
}

func article(kind imageset.Kind) string {
	if kind == imageset.Image {
		return "an"
	}
	return "a"
}
