package catalog

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
)

// catalogFlags returns a command's own flags and those common to the commands of the catalog group.
func catalogFlags(own ...[]cli.Flag) []cli.Flag {
	return program.Flags(program.Flags(own...), EditFlags(), option.DestinationFlags(), EditImageFlags(), option.ResultFlags(), option.ImageFlags())
}

// makesImage reports whether the flags name a destination of an image.
func makesImage(c *cli.Context) bool {
	return c.IsSet("tag") || c.IsSet("to") || c.Bool("push") || c.Bool("load")
}

// checkNoImage refuses image flags if the command writes no image. --platform is excepted, as it also applies to
// bundles.
func checkNoImage(p *option.Session, c *cli.Context) error {
	return option.WithoutImage(p, program.Flags(EditImageFlags(), option.ResultFlags(), option.SignFlags()), "\"build catalog\" builds an image of a catalog, "+
		"\"index add -f\" builds one without changing the catalog")
}

// isCatalogImage reports whether the command's catalog is in an image. Images are immutable: the edit writes a new one.
func isCatalogImage(p *option.Session, c *cli.Context, ref string) (bool, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return false, err
	case kind != render.Image && makesImage(c):
		e := cmdline.Usagef("%q is not an image and is changed in place: --tag, --push and --to are for images",
			ref)
		e.Object, e.Hint = ref,
			"\"build catalog\" builds an image of the changed catalog, \"index add -f\" builds one without changing "+
				"the catalog"
		return false, e
	case kind != render.Image || !render.IsImageName(ref) || begins(p, c) && !makesImage(c):
		return false, checkNoImage(p, c)
	case !makesImage(c):
		e := cmdline.Usagef("required flag(s) \"tag\" not set: the result is a new image")
		e.Object, e.Hint = ref,
			"name the new image with -t NAME; --push writes it to the registry, and may replace the old one"
		return false, e
	}
	return true, nil
}

// catalogEdit edits the catalog that the first argument names. Errors about that argument are reported before anything
// is fetched.
func catalogEdit(p *option.Session, c *cli.Context, prepare func() (change.Edit, error)) error {
	ref := c.Args().First()
	image, err := isCatalogImage(p, c, ref)
	if err != nil {
		return err
	}
	if image {
		return EditImage(p, c, ImageEdit{From: ref, inherit: true, Edit: prepare})
	}
	if err := CheckCatalog(p, c, ref); err != nil {
		return err
	}
	e, err := prepare()
	if err != nil {
		return err
	}
	return EditInPlace(p, c, ref, e)
}
