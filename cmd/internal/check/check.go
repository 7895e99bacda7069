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

	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// checkOptions are the flags of "check".
type checkOptions struct {
	option.Reading
	profiles, skip, gates                       cli.StringSlice
	waivers, ruleData, failOn, explain          string
	certProvider, kubeVersion, from, ocpVersion string
	released, snapshot, artifacts, output       string
	changedSince, changed                       string
	list, pull, upgrades, allBundles            bool
}

// CheckCommand returns the command "check".
func CheckCommand(p *option.Session) *cli.Command {
	o := &checkOptions{}
	const which, cluster, release, submissions, answer = "which rules", "the cluster", "the release", "a repository of operators",
		"answer"
	var profiles strings.Builder
	for _, profile := range rules.Profiles() {
		fmt.Fprintf(&profiles, "\n  %-11s %s", profile, profile.Usage())
	}
	return &cli.Command{
		Name:      "check",
		Usage:     "find what a cluster or a release pipeline will refuse",
		ArgsUsage: "CATALOG|BUNDLE|REPOSITORY",
		Description: `The argument is a directory or an image with a catalog or a bundle, or a repository of
operators, to which pull requests are sent, or a part of one: operators/NAME, operators/NAME/VERSION,
catalogs/vX.Y, catalogs/vX.Y/NAME, or a directory inside of these. Reports each broken
rule with its place and what to do, and with the profile olmv1 whether OLM v1 installs each bundle: yes, no,
or not known without its image, which --pull reads. With --upgrades it says which upgrades of a catalog OLM
v1 refuses because of changed CustomResourceDefinitions, and with --from that of a bundle. The exit status is
1 if a rule of the severity of --fail-on is broken and no waiver accepts it.

In a repository of operators the profile is that of its config.yaml, and of each operator the bundle of the
highest version is checked, or with --all-bundles each. With --changed-since REF the check is about what a
pull request would change since the branch REF, committed or staged by git add, and says which title the
request gets; the list of changed files can come from git, too:
git diff --name-status main | bindery check . --changed -

Profiles, for --profile:` + profiles.String() + `

A file of --waivers has a list waivers, each with rule, reason and until (a date), and package, channel,
bundle or file to narrow it down. A file of --rule-data has the keys of Conforma's rule data.` +
			program.Examples("bindery check catalog --profile olmv1", "bindery check bundle --profile olmv1,community",
				"bindery check catalog --profile olmv1 --upgrades", "bindery check new-bundle --from bundle",
				"bindery check registry.example.com/acme/catalog:v1 --profile konflux -o json",
				"bindery check operators/demo/1.1.0 --profile community", "bindery check . --changed-since origin/main",
				"bindery check --explain olmv1.dependency"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "profile", Destination: &o.profiles, Category: which,
				Usage:       "rules of the profile `NAME` (" + strings.Join(profileNames(), "|") + "); can be repeated",
				DefaultText: "opm, olmv1; in a repository of operators that of its config.yaml"},
			&cli.StringSliceFlag{Name: "skip", Destination: &o.skip, Category: which, Usage: "leave out the rule `ID`; can be repeated"},
			&cli.StringFlag{Name: "waivers", Destination: &o.waivers, Category: which, Usage: "`FILE` with findings that are accepted"},
			&cli.StringFlag{Name: "rule-data", Destination: &o.ruleData, Category: which,
				Usage: "`FILE` with permitted registries, kinds and labels, and versions of OpenShift"},
			&cli.StringFlag{Name: "fail-on", Destination: &o.failOn, Category: which, Value: string(rules.Error),
				Usage: "lowest `SEVERITY` that makes the check fail (error|warning)"},
			&cli.BoolFlag{Name: "list", Destination: &o.list, Category: which, Usage: "list the rules (of --profile), and check nothing"},
			&cli.StringFlag{Name: "explain", Destination: &o.explain, Category: which, Usage: "explain the rule `ID`, and check nothing"},
			&cli.StringFlag{Name: "cert-provider", Destination: &o.certProvider, Value: string(manifests.CertManager), Category: cluster,
				Usage: "what makes the certificates of webhooks: `NAME` (" +
					strings.Join(manifests.CertProviders(), "|") + ")"},
			&cli.StringSliceFlag{Name: "gate", Destination: &o.gates, Category: cluster,
				Usage: "feature gate `NAME` that is on (" + strings.Join(checkGates(), "|") + "); can be repeated"},
			&cli.StringFlag{Name: "kube-version", Destination: &o.kubeVersion, Category: cluster, DefaultText: currentAPIs().Version(),
				Usage: "`VERSION` of Kubernetes, which serves the APIs of the objects, such as 1.25"},
			&cli.BoolFlag{Name: "pull", Destination: &o.pull, Category: release,
				Usage: "read the images of bundles, the layers of the image and its base"},
			&cli.BoolFlag{Name: "upgrades", Destination: &o.upgrades, Category: cluster,
				Usage: "judge the upgrades of a catalog: whether OLM v1 takes each, by the definitions of both bundles"},
			&cli.StringFlag{Name: "from", Destination: &o.from, Category: cluster,
				Usage: "judge the upgrade of a bundle from the `BUNDLE` that is installed, a directory or an image"},
			&cli.StringFlag{Name: "ocp-version", Destination: &o.ocpVersion, Category: release,
				Usage:       "OpenShift `VERSION` that the catalog is for, such as v4.17",
				DefaultText: "that of the base image"},
			&cli.StringFlag{Name: "released", Destination: &o.released, Category: release,
				Usage: "the released `CATALOG`, which the pruning check compares with"},
			&cli.StringFlag{Name: "snapshot", Destination: &o.snapshot, Category: release,
				Usage: "`FILE` with the release snapshot, JSON with components, that the images of a bundle are in"},
			&cli.StringFlag{Name: "artifacts", Destination: &o.artifacts, Category: release,
				Usage: "write related-images.json and catalog.json, which Konflux attaches, to `DIR`"},
			&cli.BoolFlag{Name: "all-bundles", Destination: &o.allBundles, Category: submissions,
				Usage: "check all bundles of each operator by the rules on bundles"},
			&cli.StringFlag{Name: "changed-since", Destination: &o.changedSince, Category: submissions,
				Usage: "check what changed since the git revision `REF`, or since another directory with the repository"},
			&cli.StringFlag{Name: "changed", Destination: &o.changed, Category: submissions, TakesFile: true,
				Usage: "check what changed: `FILE` has what \"git diff --name-status\" or --name-only prints (- for standard input)"},
			program.InCategory(answer, program.AnswerFlag(&o.output, "junit", "sarif", "github")),
		}, o.Reading.Flags()...),
		Action: p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args) }),
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
func currentAPIs() *bundlecheck.APIs {
	apis, _ := bundlecheck.NewAPIs("") // the empty version is valid
	return apis
}

func checkGates() []string { return []string{string(manifests.SingleOwnNamespace), releaseGate} }

func (o *checkOptions) run(ctx context.Context, p *option.Session, args []string) error {
	format, err := program.AnswerFormat(o.output, "junit", "sarif", "github")
	if err != nil {
		return err
	}
	with, err := o.read(ctx, p, args)
	if err != nil {
		return err
	}
	if o.answersRules() {
		return o.listRules(ctx, p, args, format, with.Profiles)
	}
	ref := args[0]
	if with.Render, err = o.Options(ctx, p, args...); err != nil {
		return err
	}
	with.Jobs = o.Jobs
	progress := p.Progress()
	units := "bundles"
	if with.InRepository(ref) {
		units = "parts"
	}
	with.Progress = func(done, all int) {
		progress.Set(cmdline.State{What: "checking", Done: done, All: all, Units: units})
	}
	with.Compared = func(done, all int) {
		progress.Set(cmdline.State{What: "comparing", Done: done, All: all, Units: "upgrades"})
	}
	report, err := checkup.Check(ctx, ref, with)
	err = errors.Join(err, with.Request.Close())
	progress.Close()
	if err != nil {
		return checkError(ref, err)
	}
	if p.Given("artifacts") && report.Kind != rules.OnCatalog {
		return cmdline.Usagef("--artifacts has no effect on a bundle: Konflux attaches the files to catalog images")
	}
	located := report.Below(localDir(ref))
	if report.Root != "" {
		located = report.Named(func(file string) string { return fromHere(filepath.Join(report.Root, filepath.FromSlash(file))) })
	}
	switch format {
	case program.JSON, program.YAML:
		err = p.PrintValue(format, report)
	case "junit":
		err = p.Spooled(ctx, func(w io.Writer) error { return located.WriteJUnit(w, with.FailOn) })
	case "sarif":
		err = p.Spooled(ctx, func(w io.Writer) error { return located.WriteSARIF(w, version.Release()) })
	case "github":
		err = p.Spooled(ctx, func(w io.Writer) error {
			if err := located.WriteGitHub(w); err != nil {
				return err
			}
			return writeSums(w, located, o.pull)
		})
	default:
		err = p.Spooled(ctx, func(w io.Writer) error { return writeCheck(w, located, o.pull) })
	}
	if err == nil && o.artifacts != "" {
		err = o.writeArtifacts(ctx, p, report, with)
	}
	if err == nil && !report.Passed {
		err = &cmdline.ExitStatus{Status: 1}
	}
	return err
}

// answersRules reports whether the answer is about the rules, and nothing is checked.
func (o *checkOptions) answersRules() bool { return o.list || o.explain != "" }

// writeArtifacts writes the files of --artifacts. The report has been printed: it says why a catalog cannot be
// rendered.
func (o *checkOptions) writeArtifacts(ctx context.Context, p *option.Session, report *rules.Report,
	with checkup.Options) error {
	if err := checkup.WriteArtifacts(ctx, o.artifacts, report.Subject, with); err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	p.Log.Info("wrote catalog.json and related-images.json to " + o.artifacts)
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

// fromHere returns an absolute name as it is written from the working directory, with slashes.
func fromHere(name string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, name); err == nil {
			name = rel
		}
	}
	return filepath.ToSlash(name)
}

// checkError adds a hint to the errors of what cannot be checked.
func checkError(ref string, err error) error {
	if errors.Is(err, checkup.ErrKind) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "convert a database with \"bindery migrate\" and check the catalog"}
	}
	if errors.Is(err, checkup.ErrNoRules) {
		return &cmdline.Error{Class: cmdline.ClassUsage, Object: ref, Err: err,
			Hint: "\"bindery check --list --profile NAME\" says what the rules of a profile are about"}
	}
	if errors.Is(err, checkup.ErrSubmission) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err, Hint: "name the root of the repository, which has " +
			"the directory operators, and with --profile community|certified|marketplace its kind if config.yaml does not say it"}
	}
	if errors.Is(err, submission.ErrNoProfile) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "name it by --profile community, certified or marketplace"}
	}
	if errors.Is(err, submission.ErrNoChange) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "the files of a change count when they are staged or committed: \"git add operators catalogs\""}
	}
	if errors.Is(err, checkup.ErrAlone) {
		return &cmdline.Error{Class: cmdline.ClassUsage, Object: ref, Err: err,
			Hint: "leave the profiles community, certified and marketplace out, or --pull, --upgrades, --from, --released and --snapshot"}
	}
	if errors.Is(err, checkup.ErrFrom) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
			Hint: "--upgrades judges the upgrades of a catalog, and --from BUNDLE the one to a bundle of the same package"}
	}
	return err
}

// read reads the flags that say which rules run.
func (o *checkOptions) read(ctx context.Context, p *option.Session, args []string) (with checkup.Options, err error) {
	if err := p.Filled("waivers", "rule-data", "explain", "kube-version", "ocp-version", "released", "snapshot", "from",
		"artifacts", "output", "profile", "skip", "gate", "changed-since", "changed"); err != nil {
		return with, err
	}
	if o.list && p.Given("explain") {
		return with, cmdline.Usagef("--list and --explain are mutually exclusive")
	}
	names, err := cmdline.List(o.profiles.Value())
	if err != nil {
		return with, err
	}
	for _, name := range names {
		profile, err := rules.ParseProfile(name)
		if err != nil {
			return with, cmdline.Usagef("--profile: %v", err)
		}
		if !slices.Contains(with.Profiles, profile) {
			with.Profiles = append(with.Profiles, profile)
		}
	}
	if o.answersRules() {
		return with, listFlagEffects(p)
	}
	if err := program.CheckArguments(p.Command, 1, 1); err != nil {
		return with, err
	}
	if len(with.Profiles) == 0 {
		if with.Profiles, err = checkup.Profiles(args[0]); err != nil {
			return with, checkError(args[0], err)
		}
	}
	if pipelines := slices.DeleteFunc(slices.Clone(with.Profiles), func(p rules.Profile) bool {
		return !slices.Contains(rules.Pipelines(), p)
	}); len(pipelines) > 1 {
		return with, cmdline.Usagef("--profile: a submission goes to one pipeline: say one of %s", strings.Join(asStrings(pipelines), ", "))
	}
	if err := checkFlagEffects(p, with.Profiles); err != nil {
		return with, err
	}
	if with.Skip, err = cmdline.List(o.skip.Value()); err != nil {
		return with, err
	}
	for _, id := range with.Skip {
		if err := rules.CheckID(id, checkup.Rules()); err != nil {
			return with, cmdline.Usagef("--skip: %v", err)
		}
	}
	with.FailOn = rules.Severity(o.failOn)
	if with.FailOn != rules.Error && with.FailOn != rules.Warning {
		return with, cmdline.Usagef("invalid --fail-on value %q, expected (error|warning)", with.FailOn)
	}
	if err := with.Settings.Certs.UnmarshalText([]byte(o.certProvider)); err != nil {
		return with, cmdline.Usagef("--cert-provider: %v", err)
	}
	gates, err := cmdline.List(o.gates.Value())
	if err != nil {
		return with, err
	}
	for _, gate := range gates {
		switch gate {
		case releaseGate:
			with.ReleaseSupport = true
		case string(manifests.SingleOwnNamespace):
			with.Settings.Gates = append(with.Settings.Gates, manifests.SingleOwnNamespace)
		default:
			return with, cmdline.Usagef("invalid --gate value %q, expected (%s)", gate, strings.Join(checkGates(), "|"))
		}
	}
	if with.APIs, err = bundlecheck.NewAPIs(o.kubeVersion); err != nil {
		return with, cmdline.Usagef("--kube-version: %v", err)
	}
	with.OCP, with.Released, with.Pull = o.ocpVersion, o.released, o.pull
	with.Upgrades, with.From, with.AllBundles = o.upgrades, o.from, o.allBundles
	if with.Upgrades && with.From != "" {
		return with, cmdline.Usagef("--upgrades is for catalogs and --from for bundles: say one of them")
	}
	if with.OCP != "" && !rules.IsOpenShiftVersion(with.OCP) {
		return with, cmdline.Usagef("invalid --ocp-version value %q, expected a version such as v4.17", with.OCP)
	}
	if err := o.readFiles(ctx, &with); err != nil {
		return with, err
	}
	return with, o.readRequest(ctx, p, args[0], &with)
}

// readFiles reads the files of waivers, of a snapshot and of rule data.
func (o *checkOptions) readFiles(ctx context.Context, with *checkup.Options) error {
	for _, file := range []struct {
		name string
		read func(r io.Reader, name string) error
	}{
		{o.waivers, func(r io.Reader, name string) (err error) {
			if with.Waivers, err = rules.ReadWaivers(r, name); err != nil {
				return err
			}
			return with.Waivers.CheckRules(checkup.Rules())
		}},
		{o.snapshot, func(r io.Reader, name string) (err error) {
			with.Snapshot, err = checkup.ReadSnapshot(r, name)
			return err
		}},
		{o.ruleData, func(r io.Reader, name string) (err error) {
			with.Data, err = rules.ReadData(r, name)
			return err
		}},
	} {
		if file.name == "" {
			continue
		}
		err := readInput(ctx, file.name, func(r io.Reader) error { return file.read(r, file.name) })
		if err != nil {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: file.name, Err: err}
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
