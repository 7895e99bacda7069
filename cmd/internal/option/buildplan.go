package option

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
)

// pushes reports whether the image goes to a registry.
func (o *Image) pushes() bool {
	return !o.DryRun && (o.Push || slices.ContainsFunc(o.To.Value(),
		func(o string) bool { return strings.HasPrefix(o, "docker://") }))
}

// PrintPlan prints the layers that the image would have.
func (o *Image) PrintPlan(ctx context.Context, p *Session, in string, with build.Options, plan func(build.Options) (*build.Planned, error)) error {
	var planned *build.Planned
	printed, err := o.Planned(ctx, p, in, with, func(o build.Options) (_ any, err error) {
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
func (o *Image) Planned(ctx context.Context, p *Session, in string, with build.Options,
	plan func(build.Options) (any, error)) (printed bool, err error) {
	for _, flag := range []string{"digest-file", "iid-file", "image-refs"} {
		if p.Given(flag) {
			return false, cmdline.Usagef("--%s has no effect with --plan, which builds no image", flag)
		}
	}
	if err := CheckNoDocuments(p, "with --plan, which builds no image"); err != nil {
		return false, err
	}
	if err := o.Files.Check(in); err != nil {
		return false, err
	}
	work, err := images.NewWorkspace(ctx, "")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	with.Dir = work.Dir()
	if _, err = o.Access(p).Registry.System(ctx, work.Dir()); err != nil { // as a build would say
		return false, err
	}
	planned, err := plan(with)
	if err != nil {
		return false, err
	}
	switch file := o.MetadataFile; file {
	case "":
		return false, nil
	case "-":
		return true, p.PrintValue(program.JSON, planned)
	default:
		return false, p.WriteAccount("metadata-file", file, planned)
	}
}
