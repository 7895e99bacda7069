package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/check"
	"github.com/operator-bindery/bindery/bundle/manifests"
	"github.com/operator-bindery/bindery/cmd/internal/checkup"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/rules"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/version"
)

func CheckCommand(p *option.Session) *cli.Command {
	const which, cluster, release, answer = "which rules", "the cluster", "the release", "answer"
	var profiles strings.Builder
	for _, profile := range rules.Profiles() {
		fmt.Fprintf(&profiles, "\n  %-10s %s", profile, profile.Usage())
	}
	return &cli.Command{
		Name:      "check",
		Usage:     "find what a cluster or a release pipeline will refuse",
		ArgsUsage: "CATALOG|BUNDLE",
		Description: `The argument is a directory or an image with a catalog or a bundle. Reports each broken
rule with its place and what to do, and with the profile olmv1 whether OLM v1 installs each bundle: yes, no,
or not known without its image, which --pull reads. With --upgrades it says which upgrades of a catalog OLM
v1 refuses because of changed CustomResourceDefinitions, and with --from that of a bundle. The exit status is
1 if a rule of the severity of --fail-on is broken and no waiver accepts it.

Profiles, for --profile:` + profiles.String() + `

A file of --waivers has a list waivers, each with rule, reason and until (a date), and package, channel,
bundle or file to narrow it down. A file of --rule-data has the keys of Conforma's rule data.` +
			program.Examples("bindery check catalog --profile olmv1", "bindery check bundle --profile olmv1,community",
				"bindery check catalog --profile olmv1 --upgrades", "bindery check new-bundle --from bundle",
				"bindery check registry.example.com/acme/catalog:v1 --profile konflux -o json",
				"bindery check --explain olmv1.dependency"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "profile", Category: which,
				Usage:       "rules of the profile `NAME` (" + strings.Join(profileNames(), "|") + "); can be repeated",
				DefaultText: "opm, olmv1"},
			&cli.StringSliceFlag{Name: "skip", Category: which, Usage: "leave out the rule `ID`; can be repeated"},
			&cli.StringFlag{Name: "waivers", Category: which, Usage: "`FILE` with findings that are accepted"},
			&cli.StringFlag{Name: "rule-data", Category: which,
				Usage: "`FILE` with permitted registries, kinds and labels"},
			&cli.StringFlag{Name: "fail-on", Category: which, Value: string(rules.Error),
				Usage: "lowest `SEVERITY` that makes the check fail (error|warning)"},
			&cli.BoolFlag{Name: "list", Category: which, Usage: "list the rules (of --profile), and check nothing"},
			&cli.StringFlag{Name: "explain", Category: which, Usage: "explain the rule `ID`, and check nothing"},
			&cli.StringFlag{Name: "cert-provider", Value: string(manifests.CertManager), Category: cluster,
				Usage: "what makes the certificates of webhooks: `NAME` (" +
					strings.Join(manifests.CertProviders(), "|") + ")"},
			&cli.StringSliceFlag{Name: "gate", Category: cluster,
				Usage: "feature gate `NAME` that is on (" + strings.Join(checkGates(), "|") + "); can be repeated"},
			&cli.StringFlag{Name: "kube-version", Category: cluster, DefaultText: currentAPIs().Version(),
				Usage: "`VERSION` of Kubernetes, which serves the APIs of the objects, such as 1.25"},
			&cli.BoolFlag{Name: "pull", Category: release,
				Usage: "read the images of bundles, the layers of the image and its base"},
			&cli.BoolFlag{Name: "upgrades", Category: cluster,
				Usage: "judge the upgrades of a catalog: whether OLM v1 takes each, by the definitions of both bundles"},
			&cli.StringFlag{Name: "from", Category: cluster,
				Usage: "judge the upgrade of a bundle from the `BUNDLE` that is installed, a directory or an image"},
			&cli.StringFlag{Name: "ocp-version", Category: release,
				Usage:       "OpenShift `VERSION` that the catalog is for, such as v4.17",
				DefaultText: "that of the base image"},
			&cli.StringFlag{Name: "released", Category: release,
				Usage: "the released `CATALOG`, which the pruning check compares with"},
			&cli.StringFlag{Name: "snapshot", Category: release,
				Usage: "`FILE` with the release snapshot, JSON with components, that the images of a bundle are in"},
			&cli.StringFlag{Name: "artifacts", Category: release,
				Usage: "write related-images.json and catalog.json, which Konflux attaches, to `DIR`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Category: answer,
				Usage: "output `FORMAT` (json|junit|sarif); text by default"},
		}, option.ReadFlags()...),
		Action: func(c *cli.Context) error { return runCheck(p, c) },
	}
}

func profileNames() []string {
	var names []string
	for _, profile := range rules.Profiles() {
		names = append(names, string(profile))
	}
	return names
}

// currentAPIs are those of the version that is assumed without a flag.
func currentAPIs() *check.APIs {
	apis, _ := check.NewAPIs("") // the empty version is valid
	return apis
}

func checkGates() []string { return []string{string(manifests.SingleOwnNamespace), releaseGate} }

func runCheck(p *option.Session, c *cli.Context) error {
	format, err := program.ListFormat(c, "json", "junit", "sarif")
	if err != nil {
		return err
	}
	o, err := checkOptions(p, c)
	if err != nil {
		return err
	}
	if c.Bool("list") || c.IsSet("explain") {
		return listRules(p, c, format, o.Profiles)
	}
	if err := program.Exactly(1, func(*cli.Context) error { return nil })(c); err != nil {
		return err
	}
	if o.Render, err = p.RenderOptions(c); err != nil {
		return err
	}
	o.Jobs = c.Int("jobs")
	progress := p.Progress()
	o.Progress = func(done, all int) {
		progress.Set(cmdline.State{What: "checking", Done: done, All: all, Units: "bundles"})
	}
	o.Compared = func(done, all int) {
		progress.Set(cmdline.State{What: "comparing", Done: done, All: all, Units: "upgrades"})
	}
	ref := c.Args().First()
	report, err := checkup.Check(c.Context, ref, o)
	progress.Close()
	if err != nil {
		return checkError(ref, err)
	}
	if c.IsSet("artifacts") && report.Kind != rules.OnCatalog {
		return cmdline.Usagef("--artifacts has no effect on a bundle: Konflux attaches the files to catalog images")
	}
	located := report.Below(localDir(ref))
	switch format {
	case "json":
		err = p.PrintJSON(report)
	case "junit":
		err = p.Spooled(c.Context, func(w io.Writer) error { return located.WriteJUnit(w, o.FailOn) })
	case "sarif":
		err = p.Spooled(c.Context, func(w io.Writer) error { return located.WriteSARIF(w, version.Release()) })
	default:
		err = p.Spooled(c.Context, func(w io.Writer) error { return writeCheck(w, located, c.Bool("pull")) })
	}
	if dir := c.String("artifacts"); err == nil && dir != "" {
		err = checkArtifacts(p, c, dir, report, o)
	}
	if err == nil && !report.Passed {
		err = &cmdline.ExitStatus{Status: 1}
	}
	return err
}

// checkArtifacts writes the files of --artifacts. The report has been printed: it says why a catalog cannot be
// rendered.
func checkArtifacts(p *option.Session, c *cli.Context, dir string, report *rules.Report, o checkup.Options) error {
	if err := checkup.WriteArtifacts(c.Context, dir, report.Subject, o); err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	p.Log.Info("wrote catalog.json and related-images.json to " + dir)
	return nil
}

// localDir returns a reference with slashes if it is a directory, from the working directory if it is below that;
// otherwise it is empty.
func localDir(ref string) string {
	if info, err := os.Stat(ref); err != nil || !info.IsDir() {
		return ""
	}
	if filepath.IsAbs(ref) {
		if wd, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(wd, ref); err == nil && filepath.IsLocal(rel) {
				ref = rel
			}
		}
	}
	return filepath.ToSlash(ref)
}

// checkError adds a hint to the errors of what cannot be checked.
func checkError(ref string, err error) error {
	if errors.Is(err, checkup.ErrKind) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "convert a database with \"bindery migrate\" and check the catalog"}
	}
	if errors.Is(err, checkup.ErrFrom) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "--upgrades judges the upgrades of a catalog, and --from BUNDLE the one to a bundle of the same package"}
	}
	return err
}

// checkOptions reads the flags that say which rules run.
func checkOptions(p *option.Session, c *cli.Context) (o checkup.Options, err error) {
	if err := checkFlagValues(c); err != nil {
		return o, err
	}
	if c.Bool("list") && c.IsSet("explain") {
		return o, cmdline.Usagef("--list and --explain are mutually exclusive")
	}
	names, err := cmdline.List(c.StringSlice("profile"))
	if err != nil {
		return o, err
	}
	for _, name := range names {
		profile, err := rules.ParseProfile(name)
		if err != nil {
			return o, cmdline.Usagef("--profile: %v", err)
		}
		if !slices.Contains(o.Profiles, profile) {
			o.Profiles = append(o.Profiles, profile)
		}
	}
	if c.Bool("list") || c.IsSet("explain") {
		return o, listFlagEffects(c)
	}
	if len(o.Profiles) == 0 {
		o.Profiles = []rules.Profile{rules.OPM, rules.OLMv1}
	}
	if err := checkFlagEffects(c, o.Profiles); err != nil {
		return o, err
	}
	if o.Skip, err = cmdline.List(c.StringSlice("skip")); err != nil {
		return o, err
	}
	for _, id := range o.Skip {
		if err := rules.CheckID(id, checkup.Rules()); err != nil {
			return o, cmdline.Usagef("--skip: %v", err)
		}
	}
	o.FailOn = rules.Severity(c.String("fail-on"))
	if o.FailOn != rules.Error && o.FailOn != rules.Warning {
		return o, cmdline.Usagef("invalid --fail-on value %q, expected (error|warning)", o.FailOn)
	}
	if err := o.Settings.Certs.UnmarshalText([]byte(c.String("cert-provider"))); err != nil {
		return o, cmdline.Usagef("--cert-provider: %v", err)
	}
	gates, err := cmdline.List(c.StringSlice("gate"))
	if err != nil {
		return o, err
	}
	for _, gate := range gates {
		switch gate {
		case releaseGate:
			o.ReleaseSupport = true
		case string(manifests.SingleOwnNamespace):
			o.Settings.Gates = append(o.Settings.Gates, manifests.SingleOwnNamespace)
		default:
			return o, cmdline.Usagef("invalid --gate value %q, expected (%s)", gate, strings.Join(checkGates(), "|"))
		}
	}
	if o.APIs, err = check.NewAPIs(c.String("kube-version")); err != nil {
		return o, cmdline.Usagef("--kube-version: %v", err)
	}
	o.OCP, o.Released, o.Pull = c.String("ocp-version"), c.String("released"), c.Bool("pull")
	o.Upgrades, o.From = c.Bool("upgrades"), c.String("from")
	if o.Upgrades && o.From != "" {
		return o, cmdline.Usagef("--upgrades is for catalogs and --from for bundles: say one of them")
	}
	if o.OCP != "" && !rules.IsOpenShiftVersion(o.OCP) {
		return o, cmdline.Usagef("invalid --ocp-version value %q, expected a version such as v4.17", o.OCP)
	}
	return o, readCheckFiles(c, &o)
}

// readCheckFiles reads the files of waivers and of rule data.
func readCheckFiles(c *cli.Context, o *checkup.Options) (err error) {
	if name := c.String("waivers"); name != "" {
		err = readInput(c.Context, name, func(r io.Reader) (err error) {
			o.Waivers, err = rules.ReadWaivers(r, name)
			return err
		})
		if err == nil {
			err = o.Waivers.CheckRules(checkup.Rules())
		}
		if err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: err}
		}
	}
	if name := c.String("snapshot"); name != "" {
		err = readInput(c.Context, name, func(r io.Reader) (err error) {
			o.Snapshot, err = checkup.ReadSnapshot(r, name)
			return err
		})
		if err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: err}
		}
	}
	if name := c.String("rule-data"); name != "" {
		err = readInput(c.Context, name, func(r io.Reader) (err error) {
			o.Data, err = rules.ReadData(r, name)
			return err
		})
		if err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: err}
		}
	}
	return nil
}

func readInput(ctx context.Context, name string, read func(io.Reader) error) error {
	f, err := regularfile.OpenNamed(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}
