package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/olmv1/safety"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

const manifestsCategory = "with --manifests"

// manifestsFlags are the flags of diff for bundles.
func (o *diffOptions) manifestsFlags() []cli.Flag {
	return append([]cli.Flag{&cli.BoolFlag{Name: "manifests", Destination: &o.manifests,
		Usage: "compare what OLM v1 applies for two bundles, or two directories or files of manifests"},
		bundlecmd.RuntimeFlag(&o.runtime, manifestsCategory)}, o.settings.Flags(manifestsCategory)...)
}

// catalogDiffNames are the flags of diff that have an effect on catalogs only.
var catalogDiffNames = []string{"only", "color", "migrate-level", "migrate", "compat"}

// checkFlags refuses flags of one kind of comparison with the other.
func (o *diffOptions) checkFlags(p *option.Session) error {
	names, why := append([]string{"runtime"}, bundlecmd.SettingsNames...), "--%s requires --manifests"
	if o.manifests {
		names, why = catalogDiffNames, "--%s has no effect with --manifests"
	}
	for _, name := range names {
		if p.Given(name) {
			return cmdline.Usagef(why, name)
		}
	}
	return nil
}

// compareManifests compares what is applied for two bundles.
func compareManifests(ctx context.Context, p *option.Session, o *diffOptions, before, after string) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	s, err := o.settings.Read(ctx, p)
	if err != nil {
		return err
	}
	runtime, err := bundlecmd.ParseRuntime(o.runtime)
	if err != nil {
		return err
	}
	var sides [2]side
	refs := [2]string{before, after}
	for i := range sides {
		if sides[i], err = openSide(ctx, p, &o.Images, refs[i]); err != nil {
			return err
		}
	}
	objects, err := renderSides(p, refs, sides, s, runtime)
	if err != nil {
		return err
	}
	report, err := upgrade.Compare(ctx, toCompare(objects[0]), toCompare(objects[1]), safety.Refused)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		err = p.PrintValue(format, report)
	} else {
		err = p.Spooled(ctx, func(w io.Writer) error { return report.WriteText(w, printable.Cell) })
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if !report.Same {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}

// toCompare returns manifests as they are compared.
func toCompare(objects []manifests.Object) []upgrade.Manifest {
	out := make([]upgrade.Manifest, len(objects))
	for i, o := range objects {
		out[i] = upgrade.Manifest{Object: upgrade.Object{Group: o.Group(), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name},
			JSON: o.JSON}
	}
	return out
}

// renderSides returns the objects of both sides. Both versions are compared in one namespace, the new one's: otherwise
// every object would differ.
func renderSides(p *option.Session, refs [2]string, sides [2]side, s manifests.Settings,
	runtime manifests.Runtime) (out [2][]manifests.Object, err error) {
	from := ""
	for i := len(sides) - 1; i >= 0; i-- {
		b := sides[i].bundle
		if b == nil {
			out[i] = sides[i].objects
			continue
		}
		if from == "" {
			from = bundlecmd.InstallNamespace(b, &s)
		}
		if out[i], err = bundlecmd.RenderBundle(p, refs[i], b, s, from); err != nil {
			return out, err
		}
		var written []manifests.Object
		if other := sides[1-i]; other.bundle == nil {
			written = other.objects
		}
		if out[i], err = dressedAs(out[i], written, s.InstallNamespace, runtime); err != nil {
			return out, err
		}
	}
	return out, nil
}

// dressedAs returns the objects of a bundle as the runtime applies them. What manifests have that --create-namespace and
// --olm-labels wrote is no difference between versions: the objects get it too.
func dressedAs(objects, written []manifests.Object, namespace string, runtime manifests.Runtime) ([]manifests.Object,
	error) {
	if len(written) == 0 {
		return runtime.For(objects, manifests.Marks{})
	}
	for _, o := range written {
		if o.Kind == "Namespace" && o.Group() == "" && o.Name == namespace {
			ns, err := manifests.Namespace(namespace)
			if err != nil {
				return nil, err
			}
			objects = append([]manifests.Object{ns}, objects...)
			break
		}
	}
	marks, by := written[len(written)-1].Marks()
	if by == manifests.Boxcutter {
		runtime = by
	}
	return runtime.For(objects, marks)
}

// side is what is compared: a bundle, or objects.
type side struct {
	bundle  *manifests.Bundle
	objects []manifests.Object
}

// openSide reads a bundle; a file, or a directory that is no bundle, has manifests.
func openSide(ctx context.Context, p *option.Session, from *option.Images, ref string) (side, error) {
	info, err := os.Stat(ref)
	switch {
	case err != nil || info.IsDir() && hint.IsBundle(ref):
		b, err := bundlecmd.ReadBundle(ctx, p, from, ref)
		return side{bundle: b}, err
	case info.IsDir():
		objects, err := dirManifests(ref)
		return side{objects: objects}, manifestsError(ref, err)
	}
	objects, err := fileManifests(ctx, ref)
	return side{objects: objects}, manifestsError(ref, err)
}

func dirManifests(dir string) (_ []manifests.Object, err error) {
	root, err := bundlefs.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return manifests.ParseDir(root.FS())
}

// maxManifests is the size of a file of manifests in bytes.
const maxManifests = 64 << 20

func fileManifests(ctx context.Context, name string) ([]manifests.Object, error) {
	text, err := regularfile.ReadNamed(ctx, name, maxManifests)
	if err != nil {
		return nil, err
	}
	return manifests.Parse(name, text)
}

// manifestsError adds the class and the object to an error about manifests.
func manifestsError(ref string, err error) error {
	var file *fs.PathError
	switch {
	case err == nil || errors.As(err, &file):
		return err
	case errors.Is(err, bundlefs.ErrLimit):
		return &cmdline.Error{Class: cmdline.ClassLimit, Object: ref, Err: fmt.Errorf("%q: %w", ref, err)}
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: fmt.Errorf("%q: %w", ref, bundlecmd.Clip(err)),
		Hint: "with --manifests the arguments are bundles, or directories or files of rendered manifests"}
}
