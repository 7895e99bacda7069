package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/nearest"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// Prepare returns the request of the flags, with the image set and what is read for it.
func (o *SetOptions) Prepare(ctx context.Context, p *option.Session, kind imageset.Kind, at *option.Registry) (with mirror.Options, err error) {
	with = o.Request
	with.Log = p.Log
	with.Compat, with.Filter.Compat = o.CompatWith != "", o.CompatWith != ""
	if with.Filter.Installed, err = o.installedVersions(); err != nil {
		return with, err
	}
	if with.Set, err = o.read(ctx, p, kind); err != nil {
		return with, err
	}
	if with.Replace, err = o.catalogSources(with.Set); err != nil {
		return with, err
	}
	if with.Releases, err = o.Releases(ctx, at); err != nil {
		return with, err
	}
	if with.Charts, err = o.charts(ctx); err != nil {
		return with, err
	}
	with.Charts.Client, with.Charts.Compat = with.Releases.Client, with.Compat
	if skip := at.SourceAccess(p).Registry.SkipTLSVerify; skip != nil && *skip {
		err = SkipChartCertificates(ctx, at, &with)
	}
	return with, err
}

// read reads the configuration, and logs the remarks about it.
func (o *SetOptions) read(ctx context.Context, p *option.Session, kind imageset.Kind) (*imageset.Set, error) {
	file := o.Request.Config
	if file == "" {
		return nil, cmdline.Usagef(`required flag(s) "config" not set`)
	}
	if c := o.CompatWith; c != "" && c != "oc-mirror" {
		return nil, cmdline.Usagef("invalid --compat value %q, expected (oc-mirror)", c)
	}
	set, err := imageset.Read(ctx, file, kind, imageset.Options{Compat: o.CompatWith != ""})
	var wrong *imageset.Error
	switch {
	case errors.As(err, &wrong):
		e := &cmdline.Error{Class: cmdline.ClassInput, Object: file, Err: err}
		switch text := err.Error(); {
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

// installedVersions reads --installed.
func (o *SetOptions) installedVersions() (all []filter.Installed, err error) {
	for _, text := range o.installed.Value() {
		for _, pair := range strings.Split(text, ",") {
			name, version, ok := strings.Cut(pair, "=")
			if !ok || name == "" || version == "" {
				return nil, cmdline.Usagef("invalid --installed value %q, expected PACKAGE=VERSION", pair)
			}
			all = append(all, filter.Installed{Package: name, Version: version})
		}
	}
	return all, nil
}

// catalogSources returns the catalogs to be read in place of those in a configuration, by the reference as it is
// written there: the values of --catalog.
func (o *SetOptions) catalogSources(set *imageset.Set) (map[string]string, error) {
	var known []string
	for i := range set.Operators {
		known = append(known, set.Operators[i].Written)
	}
	out := map[string]string{}
	for _, text := range o.catalogs.Value() {
		ref, source, ok := strings.Cut(text, "=")
		if !ok || ref == "" || source == "" {
			return nil, cmdline.Usagef("invalid --catalog value %q, expected REF=SOURCE", text)
		}
		found := false
		for _, op := range set.Operators {
			if ref == op.Written || strings.TrimPrefix(ref, "docker://") == op.Catalog.Name() {
				out[op.Written], found = source, true
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
