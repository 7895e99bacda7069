package catalog

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/render"
)

// catalogFlags returns a command's own flags and those common to the commands of the catalog group.
func (o *EditOptions) catalogFlags(own ...[]cli.Flag) []cli.Flag {
	return program.Flags(program.Flags(own...), o.Flags(), o.Destination.Flags(), o.IndexFlags(), o.Result.Flags(), o.Supply.Flags(),
		o.Images.Flags())
}

// makesImage reports whether the flags name a destination of an image.
func (o *EditOptions) makesImage() bool {
	return len(o.Tags.Value())+len(o.To.Value()) > 0 || o.Push || o.Load
}

// checkNoImage refuses image flags if the command writes no image. --platform is excepted, as it also applies to
// bundles.
func (o *EditOptions) checkNoImage(p *option.Session) error {
	return option.WithoutImage(p, program.Flags(o.IndexFlags(), o.Result.Flags(), o.Supply.Flags(), o.Signing.Flags()),
		"\"build catalog\" builds an image of a catalog, \"index add -f\" builds one without changing the catalog")
}

// isCatalogImage reports whether the command's catalog is in an image. Images are immutable: the edit writes a new one.
func (o *EditOptions) isCatalogImage(p *option.Session, ref string) (bool, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return false, err
	case kind != render.Image && o.makesImage():
		e := cmdline.Usagef("%q is not an image and is changed in place: --tag, --push and --to are for images",
			ref)
		e.Object, e.Hint = ref,
			"\"build catalog\" builds an image of the changed catalog, \"index add -f\" builds one without changing "+
				"the catalog"
		return false, e
	case kind != render.Image || render.CheckName(ref) != nil || o.begins(p) && !o.makesImage():
		return false, o.checkNoImage(p)
	case !o.makesImage():
		e := cmdline.Usagef("required flag(s) \"tag\" not set: the result is a new image")
		e.Object, e.Hint = ref,
			"name the new image with -t NAME; --push writes it to the registry, and may replace the old one"
		return false, e
	}
	return true, nil
}

// edit edits a catalog. Errors about its reference are reported before anything
// is fetched.
func (o *EditOptions) edit(ctx context.Context, p *option.Session, ref string, prepare Prepare) error {
	image, err := o.isCatalogImage(p, ref)
	if err != nil {
		return err
	}
	if image {
		return o.MakeImage(ctx, p, ImageEdit{From: ref, inherit: true, Edit: prepare})
	}
	if err := o.CheckCatalog(p, ref); err != nil {
		return err
	}
	e, err := prepare(ctx)
	if err != nil {
		return err
	}
	return o.InPlace(ctx, p, ref, e)
}
