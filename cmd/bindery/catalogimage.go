package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
)

// catalogFlags returns a command's own flags and those common to the commands of the catalog group.
func catalogFlags(own ...[]cli.Flag) []cli.Flag {
	return flags(flags(own...), editFlags(), destinationFlags(), editImageFlags(), resultFlags(), imageFlags())
}

// makesImage reports whether the flags name a destination of an image.
func makesImage(c *cli.Context) bool {
	return c.IsSet("tag") || c.IsSet("output") || c.Bool("push") || c.Bool("load")
}

// checkNoImage refuses image flags if the command writes no image. --platform is excepted, as it also applies to
// bundles.
func checkNoImage(c *cli.Context) error {
	return withoutImage(c, flags(editImageFlags(), resultFlags(), signFlags()), "\"build catalog\" builds an image of a catalog, "+
		"\"index add -f\" builds one without changing the catalog")
}

// withoutImage refuses the flags that are for images only.
func withoutImage(c *cli.Context, all []cli.Flag, hint string) error {
	for _, f := range all {
		if name := f.Names()[0]; name != "platform" && givenHere(c, name) {
			e := cmdline.Usagef("--%s requires an image as output", name)
			e.Hint = hint
			return e
		}
	}
	return nil
}

// isCatalogImage reports whether the command's catalog is in an image. Images are immutable: the edit writes a new one.
func (p *program) isCatalogImage(c *cli.Context, ref string) (bool, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return false, err
	case kind != render.Image && makesImage(c):
		e := cmdline.Usagef("%q is not an image and is changed in place: --tag, --push and --output are for images",
			ref)
		e.Object, e.Hint = ref,
			"\"build catalog\" builds an image of the changed catalog, \"index add -f\" builds one without changing "+
				"the catalog"
		return false, e
	case kind != render.Image || !render.IsImageName(ref) || p.begins(c) && !makesImage(c):
		return false, checkNoImage(c)
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
func (p *program) catalogEdit(c *cli.Context, prepare func() (change.Edit, error)) error {
	ref := c.Args().First()
	image, err := p.isCatalogImage(c, ref)
	if err != nil {
		return err
	}
	if image {
		return p.editImage(c, imageEdit{from: ref, inherit: true, edit: prepare})
	}
	if err := p.checkCatalog(c, ref); err != nil {
		return err
	}
	e, err := prepare()
	if err != nil {
		return err
	}
	return p.editInPlace(c, ref, e)
}
