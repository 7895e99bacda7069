package option

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// pushes reports whether the image goes to a registry.
func (o *Image) pushes() bool {
	return !o.DryRun && (o.Push || slices.ContainsFunc(o.To.Value(),
		func(o string) bool { return strings.HasPrefix(o, "docker://") }))
}

// PrintPlan prints the layers that the image would have.
func (o *Image) PrintPlan(p *Session, planned *build.Planned) error {
	if printed, err := o.WritePlan(p, planned); err != nil || printed {
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

// checkPlan refuses flags about an image that is built.
func checkPlan(p *Session) error {
	for _, flag := range []string{"digest-file", "iid-file", "image-refs"} {
		if p.Given(flag) {
			return cmdline.Usagef("--%s has no effect with --plan, which builds no image", flag)
		}
	}
	return CheckNoDocuments(p, "with --plan, which builds no image")
}

// WritePlan writes a plan to the file of --metadata-file. It returns true if that is standard output, to which nothing else
// may be written then.
func (o *Image) WritePlan(p *Session, planned any) (printed bool, err error) {
	switch file := o.MetadataFile; file {
	case "":
		return false, nil
	case "-":
		return true, p.PrintValue(program.JSON, planned)
	default:
		return false, p.WriteAccount("metadata-file", file, planned)
	}
}
