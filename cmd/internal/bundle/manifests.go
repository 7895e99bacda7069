package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/olmv1/manifestfiles"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// manifestsOptions are the flags of "bundle manifests".
type manifestsOptions struct {
	option.Images
	Settings
	to, output, olmLabels, runtime string
	split, phases, createNamespace bool
}

func bundleManifestsCommand(p *option.Session) *cli.Command {
	o := &manifestsOptions{}
	flags := append(o.Settings.Flags("cluster and extension"),
		&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "write to the directory `DIR`, in place of standard output",
			Category: "output"},
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: string(manifestfiles.YAML), Category: "output",
			Destination: &o.output,
			Usage:       "`FORMAT` (" + strings.Join(manifestfiles.Formats(), "|") + ")"},
		&cli.BoolFlag{Name: "split", Category: "output", Destination: &o.split,
			Usage: "write a file for each object and a kustomization.yaml; needs --to"},
		&cli.BoolFlag{Name: "phases", Category: "output", Destination: &o.phases,
			Usage: "order the objects by the phases in which the runtime Boxcutter applies them"},
		&cli.BoolFlag{Name: "create-namespace", Category: "output", Destination: &o.createNamespace,
			Usage: "write the install namespace as well, which a ClusterExtension expects to be there"},
		&cli.StringFlag{Name: "olm-labels", Category: "output", Destination: &o.olmLabels,
			Usage: "add the labels, and the annotations of --runtime boxcutter, with which OLM marks what the " +
				"ClusterExtension `NAME` owns"},
		RuntimeFlag(&o.runtime, "output"),
		o.PlatformFlag())
	return &cli.Command{
		Name:      "manifests",
		Usage:     "render a bundle to the manifests that OLM v1 applies",
		ArgsUsage: "REF",
		Description: `REF is a bundle directory or image in the format registry+v1. Writes the Kubernetes
objects that a ClusterExtension of OLM v1 applies for it: service accounts, roles, CustomResourceDefinitions,
deployments, webhooks, services, certificates. They install the operator without OLM, or show what an upgrade
would change (diff --manifests). A bundle that OLM v1 refuses is refused with all reasons. The order is that
of OLM's renderer; --phases gives that of the runtime Boxcutter.` +
			program.Examples("bindery bundle manifests bundle --install-namespace etcd --watch-namespace etcd",
				"bindery bundle manifests bundle --watch-namespace my-etcd --to deploy --split --create-namespace",
				"bindery bundle manifests bundle --watch-namespace my-etcd --phases -o ndjson",
				"bindery bundle manifests bundle --watch-namespace my-etcd --olm-labels etcd --runtime boxcutter"),
		Flags: append(flags, o.Images.Flags()...),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return printManifests(ctx, p, o, args[0])
		})),
	}
}

func printManifests(ctx context.Context, p *option.Session, o *manifestsOptions, ref string) error {
	format := manifestfiles.Format(o.output)
	switch {
	case !slices.Contains(manifestfiles.Formats(), string(format)):
		return cmdline.Usagef("invalid --output value %q, expected (%s)", format,
			strings.Join(manifestfiles.Formats(), "|"))
	case o.split && o.to == "":
		return cmdline.Usagef("--split requires --to DIR")
	case o.split && format == manifestfiles.NDJSON:
		return cmdline.Usagef("--split writes an object to a file: -o ndjson has no effect")
	case p.Given("to") && o.to == "":
		return cmdline.Usagef("invalid --to value %q, expected a directory", "")
	case p.Given("olm-labels") && o.olmLabels == "":
		return cmdline.Usagef("invalid --olm-labels value %q, expected the name of a ClusterExtension", "")
	}
	runtime, err := ParseRuntime(o.runtime)
	if err != nil {
		return err
	}
	if name := o.olmLabels; name != "" {
		if err := runtime.CheckExtension(name); err != nil {
			return cmdline.Usagef("invalid --olm-labels value %q: %v", name, err)
		}
	}
	s, err := o.Settings.Read(ctx, p)
	if err != nil {
		return err
	}
	if to := o.to; to != "" {
		if err := atomicfs.CheckApart(ref, to); err != nil {
			return err
		}
	}
	b, err := ReadBundle(ctx, p, &o.Images, ref)
	if err != nil {
		return err
	}
	objects, err := RenderBundle(p, ref, b, s, InstallNamespace(b, &s))
	if err != nil {
		return err
	}
	if o.createNamespace {
		ns, err := manifests.Namespace(s.InstallNamespace)
		if err != nil {
			return err
		}
		objects = append([]manifests.Object{ns}, objects...)
	}
	marks := manifests.Marks{Extension: o.olmLabels, Package: b.Package(), Version: b.Version()}
	if objects, err = runtime.For(objects, marks); err != nil {
		return err
	}
	return o.write(ctx, p, objects, format)
}

// InstallNamespace sets an empty install namespace to that of the bundle, and returns where it is from.
func InstallNamespace(b *manifests.Bundle, s *manifests.Settings) (from string) {
	if s.InstallNamespace != "" {
		return "as --install-namespace says"
	}
	said := false
	if s.InstallNamespace, said = b.SuggestedNamespace(); said {
		return "the bundle suggests it"
	}
	return "after the package; --install-namespace names another one"
}

// RenderBundle renders a bundle, and says what was assumed. from is where the install namespace is from.
func RenderBundle(p *option.Session, ref string, b *manifests.Bundle, s manifests.Settings, from string) (
	[]manifests.Object, error) {
	objects, err := b.Manifests(s)
	if err != nil {
		return nil, refusedBundle(ref, b, s, err)
	}
	if err := checkNamespace(s.InstallNamespace); err != nil {
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
			Hint: "--install-namespace names another one",
			Err:  fmt.Errorf("%q: the namespace for it would be %.100q: %w", ref, s.InstallNamespace, err)}
	}
	p.Log.Info(fmt.Sprintf("%s: %s for namespace %s (%s); %s", b.Name(), program.Count(len(objects), "object"),
		s.InstallNamespace, from, assumed(b, s)))
	repeated := manifests.Repeated(objects)
	for _, i := range slices.Sorted(maps.Keys(repeated)) {
		p.Log.Warn(fmt.Sprintf("%s: there are several; Helm applies one over the other, Boxcutter refuses them", objects[i]))
	}
	return objects, nil
}

// assumed says which cluster was assumed.
func assumed(b *manifests.Bundle, s manifests.Settings) string {
	gates := "no gates beyond the defaults"
	if len(s.Gates) > 0 {
		var names []string
		for _, g := range s.Gates {
			if !slices.Contains(names, string(g)) {
				names = append(names, string(g))
			}
		}
		gates = "gates " + strings.Join(names, ", ")
	}
	if !b.HasWebhooks() {
		return gates
	}
	return "certificates of webhooks by " + string(s.Certs) + ", " + gates
}

// refusedBundle returns an error with all reasons why OLM v1 refuses a bundle.
func refusedBundle(ref string, b *manifests.Bundle, s manifests.Settings, err error) error {
	if !errors.Is(err, manifests.ErrInvalid) {
		return err
	}
	var lines []string
	hint := ""
	for _, problem := range b.Problems(s) {
		lines = append(lines, problem.String())
		if hint == "" {
			hint = refusalHint(b, s, problem)
		}
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Hint: hint,
		Err: fmt.Errorf("OLM v1 does not install %q:\n%s", ref, strings.Join(firstProblems(lines, "reasons"), "\n"))}
}

// refusalHint returns what to do about a reason; empty: nothing that a flag changes.
func refusalHint(b *manifests.Bundle, s manifests.Settings, problem manifests.Problem) string {
	text := problem.Message
	switch {
	case problem.ID == manifests.IDWebhook:
		return "its webhooks need certificates: --cert-provider cert-manager or service-ca"
	case problem.ID == manifests.IDConfig && strings.Contains(text, `unknown field "deploymentConfig"`):
		return "deploymentConfig needs --gate " + string(manifests.DeploymentConfig)
	case problem.ID == manifests.IDConfig && strings.Contains(text, `unknown field "watchNamespace"`):
		return "the bundle supports only " + strings.Join(b.InstallModes(), ", ") + ": it watches all namespaces"
	case problem.ID == manifests.IDInstallMode && s.Config != nil &&
		!slices.Contains(s.Gates, manifests.SingleOwnNamespace):
		return "a configuration with watchNamespace needs --gate " + string(manifests.SingleOwnNamespace)
	case problem.ID == manifests.IDConfig && strings.Contains(text, `required field "watchNamespace" is missing`),
		problem.ID == manifests.IDInstallMode && (slices.Contains(b.InstallModes(), "SingleNamespace") ||
			slices.Contains(b.InstallModes(), "OwnNamespace")):
		return "the bundle supports " + strings.Join(b.InstallModes(), ", ") +
			": --watch-namespace NAMESPACE renders it for one namespace"
	case problem.ID == manifests.IDConfig && strings.Contains(text, "must be \""):
		return "--watch-namespace and --install-namespace must be the same for this bundle"
	}
	return ""
}

// RuntimeFlag selects what applies the objects.
func RuntimeFlag(at *string, category string) cli.Flag {
	return &cli.StringFlag{Name: "runtime", Destination: at, Value: string(manifests.Helm), Category: category,
		Usage: "write the objects as the `RUNTIME` of operator-controller applies them (" +
			strings.Join(manifests.Runtimes(), "|") + ")"}
}

// ParseRuntime reads the value of [RuntimeFlag].
func ParseRuntime(text string) (r manifests.Runtime, err error) {
	if err := r.UnmarshalText([]byte(text)); err != nil {
		return r, cmdline.Usagef("--runtime: %v", err)
	}
	return r, nil
}

// write writes the objects to where the flags say.
func (o *manifestsOptions) write(ctx context.Context, p *option.Session, objects []manifests.Object, format manifestfiles.Format) error {
	phases := []manifests.Phase{{Objects: objects}}
	if o.phases {
		phases = manifests.Phases(objects)
	}
	if o.split {
		files, err := format.Files(phases, o.phases)
		if err != nil {
			return err
		}
		return writeManifestFiles(ctx, p, o.to, files)
	}
	text, err := format.Text(phases, o.phases)
	if err != nil {
		return err
	}
	if o.to != "" {
		return writeManifestFiles(ctx, p, o.to, []manifestfiles.File{{Name: "manifests." + string(format), Text: text}})
	}
	return p.Spooled(ctx, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

func writeManifestFiles(ctx context.Context, p *option.Session, to string, files []manifestfiles.File) error {
	if err := manifestfiles.WriteDir(ctx, to, files); err != nil {
		if errors.Is(err, manifestfiles.ErrForeign) {
			return &cmdline.Error{Class: cmdline.ClassLocal, Object: to, Err: err,
				Hint: "nothing was written; name an empty directory, or one that this command wrote"}
		}
		return err
	}
	p.Log.Info(fmt.Sprintf("wrote %s to %s", program.Count(len(files), "file"), to))
	return p.SaveLock()
}
