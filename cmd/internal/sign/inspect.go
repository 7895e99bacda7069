package sign

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build/inspect"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/redact"
)

// inspectOptions are the flags of "inspect" and "verify".
type inspectOptions struct {
	option.Images
	output string
	jobs   int
	deep   bool
	signatureOptions
}

// InspectCommand returns "inspect".
func InspectCommand(p *option.Session) *cli.Command {
	o := &inspectOptions{}
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show what an image contains",
		ArgsUsage: "IMAGE",
		Description: `Shows the platforms, labels, layers and sizes of an image, its packages with the layers
that contain them, and its caches. By default only manifests and configurations are read, and the packages are
those that the annotations declare. With --deep all layers are read: packages are those found, and caches are
compared with the catalog.` +
			program.Examples("bindery inspect oci:catalog.oci:v1", "bindery inspect oci:catalog.oci:v1 --deep",
				"bindery inspect oci:etcd.oci:v1 -o json"),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "deep", Usage: "read all layers", Destination: &o.deep},
			program.AnswerFlag(&o.output),
			option.JobsFlag(&o.jobs, "work"),
		}, o.Images.Flags()...),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return inspectImage(ctx, p, o, args[0]) })),
	}
}

// VerifyCommand returns "verify".
func VerifyCommand(p *option.Session) *cli.Command {
	o := &inspectOptions{}
	return &cli.Command{
		Name:      "verify",
		Usage:     "verify an image against its catalog, or its signatures",
		ArgsUsage: "IMAGE",
		Description: `Reads all layers and compares them with their digests, validates the catalog, rebuilds
every bindery layer and every cache from the files in the image, and compares them as well as labels, modes,
platforms and annotations. All differences are reported. The exit status is 0 without differences and 1 with.
It is also 1 on an error, but then standard output is empty.

With --key it verifies the signatures of any image instead, .sig tags and Sigstore bundles, and with --type
its attestations; with --signatures it asks the policy. An index is signed if it is signed itself, or if every
image in it is.` +
			program.Examples("bindery verify oci:catalog.oci:v1", "bindery verify oci:catalog.oci:v1 -o json",
				"bindery verify registry.example.com/acme/catalog:v1 --key release.pub",
				"bindery verify registry.example.com/acme/catalog:v1 --key release.pub --type cyclonedx",
				"bindery verify registry.example.com/acme/catalog:v1 --signatures --policy policy.json "+
					"--registries-d registries.d"),
		Flags: program.Flags([]cli.Flag{
			program.AnswerFlag(&o.output),
			option.JobsFlag(&o.jobs, "work"),
		}, o.signatureOptions.flags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return verify(ctx, p, o, args[0]) })),
	}
}

func inspectImage(ctx context.Context, p *option.Session, o *inspectOptions, ref string) error {
	if o.output == "table" { // as it was called once
		o.output = string(program.Text)
	}
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	report, err := o.examine(ctx, p, ref, o.deep)
	if err != nil {
		return err
	}
	if report.Proof != nil && !report.Proof.Same {
		p.Log.Warn(fmt.Sprintf("the image differs from its catalog in %s: \"verify\" lists them",
			program.Count(len(report.Proof.Differences)+report.Proof.More, "thing")))
	}
	if format.IsDocument() {
		report.Proof = nil // only verify prints it
		return p.PrintValue(format, report)
	}
	return printReport(p, report)
}

func verify(ctx context.Context, p *option.Session, o *inspectOptions, ref string) error {
	if o.asked(p) {
		return verifySignatures(ctx, p, o, ref)
	}
	for _, flag := range []string{"type", "identity"} {
		if p.Given(flag) {
			return cmdline.Usagef("--%s is about signatures and needs --key or --certificate-identity", flag)
		}
	}
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	report, err := o.examine(ctx, p, ref, true)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		err = p.PrintValue(format, report)
	} else {
		err = printProof(p, report)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if o.TrustedIdentities.Value() == nil && o.TrustedKeys.Value() == nil {
		p.Log.Info("signatures were not looked at (--key, --certificate-identity, --signatures)")
	}
	if !report.Proof.Same {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}

// examine reads an image.
func (o *inspectOptions) examine(ctx context.Context, p *option.Session, ref string, deep bool) (_ *inspect.Report, err error) {
	survey, err := o.Survey(ctx, p, ref)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, survey.Close()) }()
	report := inspect.Inspect(survey)
	if deep {
		limits, err := o.Limits()
		if err != nil {
			return nil, err
		}
		if report, err = inspect.Examine(ctx, survey,
			inspect.Options{Limits: limits, Jobs: o.jobs}); err != nil {
			return nil, err
		}
	}
	report.Name = redact.Text(report.Name)
	return report, p.SaveLock()
}
