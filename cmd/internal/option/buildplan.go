package option

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
)

// previousFlag names the previous image, whose grouping of packages into layers is kept.
func previousFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "previous",
		Usage: "keep the grouping of packages into layers of `IMAGE`; ignored if it does not exist", Category: category}
}

// trustFlag allows reusing layers of the previous image without verifying them.
func trustFlag(category string) cli.Flag {
	return &cli.BoolFlag{Name: "trust-previous",
		Usage: "trust the content records of the --previous image: reuse layers of unchanged packages, even without " +
			"a cache", Category: category}
}

func PlanFlag() cli.Flag {
	return &cli.BoolFlag{Name: "plan",
		Usage:    "print the layers with their packages and sizes, without building; --metadata-file - prints JSON",
		Category: "execution"}
}

// pushes reports whether the image goes to a registry.
func pushes(c *cli.Context) bool {
	return !c.Bool("dry-run") && (c.Bool("push") || slices.ContainsFunc(c.StringSlice("to"),
		func(o string) bool { return strings.HasPrefix(o, "docker://") }))
}

// PrintPlan prints the layers that the image would have.
func (p *Session) PrintPlan(c *cli.Context, o build.Options, plan func(build.Options) (*build.Planned, error)) error {
	var planned *build.Planned
	printed, err := p.Planned(c, c.Args().First(), o, func(o build.Options) (_ any, err error) {
		planned, err = plan(o)
		return planned, err
	})
	if err != nil || printed {
		return err
	}
	var rows [][]string
	for _, l := range planned.Layers {
		size := strconv.FormatInt(l.Uncompressed, 10)
		if l.Kind == build.LayerBase {
			size = "-"
		}
		what := strings.Join(l.Packages, ", ")
		what = cmp.Or(what, l.Platform)
		rows = append(rows, []string{string(l.Kind), size, strconv.Itoa(len(l.Packages)), what})
	}
	if err := p.PrintTable([]string{"LAYER", "BYTES", "PACKAGES", "WHICH"}, rows...); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("%s in %s, %s before compression, without caches", program.Count(planned.Totals.Packages, "package"),
		program.Count(planned.Totals.Layers, "layer"), cmdline.FormatSize(planned.Totals.Uncompressed)))
	return nil
}

// Planned computes a plan in a workspace and writes it to the file of --metadata-file. It returns true if that is
// standard output, to which nothing else may be written then. in is the input of the image.
func (p *Session) Planned(c *cli.Context, in string, o build.Options,
	plan func(build.Options) (any, error)) (printed bool, err error) {
	for _, flag := range []string{"digest-file", "iid-file", "image-refs"} {
		if c.IsSet(flag) {
			return false, cmdline.Usagef("--%s has no effect with --plan, which builds no image", flag)
		}
	}
	if err := CheckNoDocuments(c, "with --plan, which builds no image"); err != nil {
		return false, err
	}
	if err := CheckResultFiles(c, in); err != nil {
		return false, err
	}
	work, err := images.NewWorkspace(c.Context, "")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	o.Dir = work.Dir()
	if _, err = RegistryOptions(c).System(c.Context, work.Dir()); err != nil { // as a build would say
		return false, err
	}
	planned, err := plan(o)
	if err != nil {
		return false, err
	}
	switch file := c.String("metadata-file"); file {
	case "":
		return false, nil
	case "-":
		return true, p.PrintJSON(planned)
	default:
		return false, p.WriteAccount("metadata-file", file, planned)
	}
}
