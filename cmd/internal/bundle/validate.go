package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/render"
)

func bundleValidateCommand(p *option.Session) *cli.Command {
	var names strings.Builder
	for _, v := range bundlecheck.Validators() {
		fmt.Fprintf(&names, "\n  %-22s %s", v.Name, v.Usage)
	}
	o := &validateOptions{}
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "select", Aliases: []string{"s"}, Destination: &o.selected, Usage: "also run the validator `NAME`"},
		&cli.StringFlag{Name: "select-optional", Destination: &o.labels, Hidden: p.Opm,
			Usage: "also run the validators with the `LABELS`, as operator-sdk: name=NAME or suite=operatorframework"},
		&cli.StringSliceFlag{Name: "optional-values", Destination: &o.values, Hidden: p.Opm,
			Usage: "`KEY=VALUE` for validators, as operator-sdk: k8s-version=1.25 is --kubernetes-version, index-path=FILE names a Dockerfile; can be repeated"},
		&cli.BoolFlag{Name: "list-optional", Destination: &o.list, Hidden: p.Opm,
			Usage: "list the validators that --select-optional selects, with their labels, and check nothing"},
		&cli.BoolFlag{Name: "verbose", Hidden: true, Usage: "ignored: operator-sdk's flag, see --log-level"},
		&cli.StringFlag{Name: "kubernetes-version", Destination: &o.kubernetes,
			Usage: "report APIs that `VERSION` does not have as errors, such as 1.25"},
		&cli.BoolFlag{Name: "plain", Destination: &o.plain, Usage: "check it as a plain+v0 bundle, regardless of its annotations"},
		&cli.BoolFlag{Name: "strict", Usage: "treat warnings as errors", Destination: &o.strict},
		&cli.StringFlag{Name: "tag", Aliases: []string{"t"}, Usage: "`REF` in place of the argument", Destination: &o.ref},
		&cli.StringFlag{Name: "image-builder", Aliases: []string{"b"}, Value: "docker", Hidden: true,
			Destination: &o.builder,
			Usage:       "ignored: no image builder is needed (docker|podman|none)"},
	}
	output := program.AnswerFlag(&o.output, sdkFormat)
	validators := &cli.StringFlag{Name: "optional-validators", Destination: &o.optional, Usage: "alias of --select: `NAMES` separated by commas",
		Hidden: !p.Opm}
	if p.Opm {
		output.Aliases, validators.Aliases = nil, []string{"o"}
	}
	flags = append(flags, output, validators, option.JobsFlag(&o.jobs, ""), o.PlatformFlag())
	return &cli.Command{
		Name:      "validate",
		Usage:     "check a bundle",
		ArgsUsage: "REF",
		Description: `REF is a bundle directory or image. Checks the annotations, the dependencies, the
manifests, and whether the Operator Lifecycle Manager can unpack the bundle, and reports all problems together
with file and line. Warnings alone do not fail the command. With -o the result is written to standard output
even if there are errors; the exit status is 1 then.

Optional validators, for --select:` + names.String() +
			program.Examples("bindery bundle validate bundle", "bindery bundle validate registry.example.com/acme/etcd:v0.9.4",
				"bindery bundle validate bundle --select good-practices -s standardcategories -o json"),
		Flags:  append(flags, o.Images.Flags()...),
		Action: p.Action(func(ctx context.Context, args []string) error { return validate(ctx, p, o, args) }),
	}
}

// sdkFormat is the form of operator-sdk's answer.
const sdkFormat program.Format = "json-alpha1"

// sdkVerdict is the answer of operator-sdk.
type sdkVerdict struct {
	Passed  bool        `json:"passed"`
	Outputs []sdkOutput `json:"outputs"`
}

type sdkOutput struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// validateOptions are the flags of "bundle validate".
type validateOptions struct {
	option.Images
	selected                                   cli.StringSlice
	kubernetes, ref, builder, output, optional string
	plain, strict                              bool
	labels, indexPath                          string
	list                                       bool
	values                                     cli.StringSlice
	jobs                                       int
}

// Verdict is the JSON answer.
type Verdict struct {
	Passed   bool              `json:"passed"`
	Problems []bundle.Problem  `json:"problems"`
	Size     *bundlecheck.Size `json:"configMapSize,omitempty"`
}

func validate(ctx context.Context, p *option.Session, o *validateOptions, args []string) error {
	format, err := program.AnswerFormat(o.output, sdkFormat)
	if err != nil {
		return err
	}
	if o.list {
		return listOptional(p, format, args)
	}
	ref, err := argumentOr(args, "tag", o.ref)
	if err != nil {
		return err
	}
	if builder := o.builder; !slices.Contains([]string{"docker", "podman", "none"}, builder) {
		return cmdline.Usagef("invalid --image-builder value %q: is not supported image builder", builder)
	}
	selected, err := cmdline.List(append(o.selected.Value(), o.optional))
	if err != nil {
		return err
	}
	if p.Given("select-optional") {
		names, err := bundlecheck.SelectByLabels(o.labels)
		if err != nil {
			return cmdline.Usagef("--select-optional: %w", err)
		}
		selected = append(selected, names...)
	}
	if err := o.readValues(); err != nil {
		return err
	}
	with := bundlecheck.Options{
		Select: selected, KubernetesVersion: o.kubernetes, IndexPath: o.indexPath,
		OLMv1: !p.Opm, OPM: p.Opm, Plain: o.plain, Strict: o.strict, Jobs: o.jobs,
	}
	with.Jobs = cmp.Or(max(with.Jobs, 0), runtime.GOMAXPROCS(0))
	report, err := checkBundle(ctx, p, &o.Images, ref, with)
	if err != nil {
		return err
	}
	switch {
	case format.IsDocument():
		return writeBundleVerdict(p, format, report)
	case format == sdkFormat:
		return writeSDKVerdict(p, ref, report)
	}
	var wrong, odd []string
	for _, problem := range report.Problems {
		if problem.Severity == bundle.SeverityError {
			wrong = append(wrong, placed(p, ref, problem))
		} else {
			odd = append(odd, placed(p, ref, problem))
		}
	}
	for _, line := range firstProblems(odd, "warnings") {
		p.Log.Warn(line)
	}
	switch {
	case len(wrong) == 0 && !p.Opm:
		text := fmt.Sprintf("%q is a valid bundle", ref)
		if report.Size.Limit > 0 {
			text += fmt.Sprintf("; OLM unpacks it to %d bytes of at most %d", report.Size.Encoded, report.Size.Limit)
		}
		p.Log.Info(text)
		return nil
	case len(wrong) == 0:
		return nil
	}
	class := cmdline.ClassInput
	if slices.ContainsFunc(report.Problems, func(p bundle.Problem) bool { return p.Rule == bundle.RuleLimit }) {
		class = cmdline.ClassLimit
	}
	err = fmt.Errorf("%q has %s:\n%s", ref, program.Count(len(wrong), "error"),
		strings.Join(firstProblems(wrong, "errors"), "\n"))
	if p.Opm {
		err = errors.New(report.OpmMessage())
	}
	return &cmdline.Error{Class: class, Object: ref, Hint: hint.OfBundle(ref), Err: err}
}

// readValues reads --optional-values.
func (o *validateOptions) readValues() error {
	values, err := cmdline.List(o.values.Value())
	if err != nil {
		return err
	}
	for _, v := range values {
		switch key, value, ok := strings.Cut(v, "="); {
		case ok && key == "k8s-version" && (o.kubernetes == "" || o.kubernetes == value):
			o.kubernetes = value
		case ok && key == "k8s-version":
			return cmdline.Usagef("--optional-values: k8s-version is %s, and another one is %s", value, o.kubernetes)
		case ok && key == "index-path":
			const most = 1 << 20
			if info, err := os.Stat(value); err != nil || !info.Mode().IsRegular() || info.Size() > most {
				return cmdline.Usagef("--optional-values: index-path %q is no file of at most %d bytes", value, most)
			}
			o.indexPath = value
		case ok && key == "container-tools": // no container engine is needed
		default:
			return cmdline.Usagef("--optional-values: no validator takes %q, only k8s-version=VERSION, index-path=FILE and container-tools=NAME", v)
		}
	}
	return nil
}

// listOptional answers --list-optional.
func listOptional(p *option.Session, format program.Format, args []string) error {
	if len(args) > 0 {
		return cmdline.Usagef("--list-optional checks nothing: leave %q out", args[0])
	}
	if format.IsDocument() {
		return cmdline.Usagef("--list-optional answers as text")
	}
	var rows [][]string
	for _, v := range bundlecheck.SDKValidators() {
		labels := "name=" + v.Name
		if v.Suite != "" {
			labels += ",suite=" + v.Suite
		}
		rows = append(rows, []string{v.Name, labels, v.Usage})
	}
	return p.PrintTable([]string{"NAME", "LABELS", "DESCRIPTION"}, rows...)
}

// writeSDKVerdict writes the answer as operator-sdk does, whose list is null if it is empty.
func writeSDKVerdict(p *option.Session, ref string, report *bundlecheck.Report) error {
	v := sdkVerdict{Passed: !report.Failed()}
	for _, problem := range report.Problems {
		v.Outputs = append(v.Outputs, sdkOutput{string(problem.Severity), placed(p, ref, problem)})
	}
	if err := p.PrintValue(program.JSON, v); err != nil || v.Passed {
		return err
	}
	return &cmdline.ExitStatus{Status: 1}
}

// placed returns a problem as a line. The file of a bundle directory is named so that the terminal can open it.
func placed(p *option.Session, ref string, problem bundle.Problem) string {
	if kind, err := render.Classify(ref); err == nil && kind == render.BundleDirectory && problem.File != "" && !p.Opm {
		problem.File = filepath.Join(ref, filepath.FromSlash(problem.File))
	}
	return problem.String()
}

// maxProblems is how many errors, and how many warnings, are shown.
const maxProblems = 200

// firstProblems shortens a long list of problems.
func firstProblems(all []string, what string) []string {
	if len(all) <= maxProblems {
		return all
	}
	return append(all[:maxProblems:maxProblems],
		fmt.Sprintf("and %d more %s, see bundle validate -o json", len(all)-maxProblems, what))
}

func writeBundleVerdict(p *option.Session, format program.Format, report *bundlecheck.Report) error {
	v := Verdict{Passed: !report.Failed(), Problems: append([]bundle.Problem{}, report.Problems...)}
	if report.Size.Limit > 0 {
		v.Size = &report.Size
	}
	if err := p.PrintValue(format, v); err != nil {
		return err
	}
	if !v.Passed {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}

// checkBundle validates the bundle that a reference names.
func checkBundle(ctx context.Context, p *option.Session, from *option.Images, ref string, o bundlecheck.Options) (*bundlecheck.Report, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return nil, err
	case kind == render.Image:
		return checkBundleImage(ctx, p, from, ref, o)
	case kind == render.Database:
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
			Err: fmt.Errorf("%q is a %s, not a bundle", ref, kind)}
	}
	root, err := bundlefs.OpenDir(ref)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	report, _, err := checkFiles(ctx, root.FS(), o)
	return report, err
}

// checkFiles reads and validates a bundle. odd reports that its annotations name directories which are not among the
// files.
func checkFiles(ctx context.Context, fsys fs.FS, o bundlecheck.Options) (report *bundlecheck.Report, odd bool, err error) {
	read := bundle.ReadOptions{Labels: o.Labels}
	if o.Plain {
		read.MediaType = bundle.PlainV0
	}
	b, err := bundle.Read(ctx, fsys, read)
	var problems *bundle.ReadError
	if err != nil && !errors.As(err, &problems) {
		return nil, false, err
	}
	report, err = bundlecheck.Run(ctx, fsys, b, o)
	if errors.Is(err, bundlecheck.ErrUnknownValidator) {
		err = cmdline.Usagef("invalid --select value: %v", err)
	}
	odd = slices.ContainsFunc(b.Problems, func(p bundle.Problem) bool { return p.Rule == bundle.RuleDirectory })
	return report, odd, err
}

// checkBundleImage validates the bundle in an image.
func checkBundleImage(ctx context.Context, p *option.Session, from *option.Images, ref string, o bundlecheck.Options) (_ *bundlecheck.Report, err error) {
	if err := imageName(ref,
		"the argument is a bundle's directory, or an image as REGISTRY/REPOSITORY:TAG"); err != nil {
		return nil, err
	}
	client, err := p.Client(ctx, from)
	if err != nil {
		return nil, err
	}
	img, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	limits, err := from.Limits()
	if err != nil {
		return nil, err
	}
	limits.Uncompressed = cmp.Or(limits.Uncompressed, render.MaxBundleImage)
	o.Labels = img.Config.Config.Labels
	if err := notBundle(ref, o.Labels); err != nil && !p.Opm {
		return nil, err
	}
	report, odd, err := checkExtracted(ctx, img, append(bundle.Paths(o.Labels), "Chart.yaml"), limits, o)
	if err == nil && odd {
		// annotations.yaml may name directories that the labels do not.
		if whole, _, werr := checkExtracted(ctx, img, []string{"."}, limits, o); werr == nil {
			report = whole
		}
	}
	return report, err
}

func checkExtracted(ctx context.Context, img *images.Image, paths []string, limits images.Limits,
	o bundlecheck.Options) (_ *bundlecheck.Report, odd bool, err error) {
	tree, err := img.Extract(ctx, paths, images.ExtractOptions{Limits: limits})
	if err != nil {
		return nil, false, fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	return checkFiles(ctx, tree, o)
}
