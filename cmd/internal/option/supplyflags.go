package option

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/provenance"
	"github.com/operator-bindery/bindery/supply/publish"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// Survey opens the image that an argument names.
func (o *Images) Survey(ctx context.Context, p *Session, ref string) (*images.Survey, error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return nil, err
	case kind != render.Image:
		return nil, notAnImage(ref, kind)
	}
	if err := render.CheckName(ref); err != nil {
		return nil, err
	}
	client, err := p.Client(ctx, o)
	if err != nil {
		return nil, err
	}
	at, err := client.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	survey, err := at.Survey(ctx)
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return survey, nil
}

// notAnImage is the error about a directory or a file where an image is wanted.
func notAnImage(ref string, kind render.Kind) error {
	e := cmdline.Usagef("%q is a %s and no image", ref, kind)
	e.Object, e.Hint = ref,
		"name the image as REGISTRY/NAME:TAG, docker://NAME, "+program.Forms(0, len(program.Transports))
	return e
}

// InventoryOptions returns how the content of an image is examined by so many jobs.
func (o *Images) InventoryOptions(jobs int) (inventory.Options, error) {
	limits, err := o.Limits()
	return inventory.Options{Limits: limits, Jobs: jobs, Release: version.Release()}, err
}

// DocumentOptions returns what documents say of this program and the time.
func DocumentOptions() (sbom.Options, error) {
	created, err := program.SourceDate()
	return sbom.Options{Version: version.Release(), Created: created}, err
}

// Supply is what is attached to an image that is built.
type Supply struct {
	SBOMs, SBOMFiles           cli.StringSlice
	Provenance, ProvenanceTime bool
	BuilderID                  string
	LegacyAttestations         bool
}

// Flags are the flags of every command that builds images.
func (o *Supply) Flags() []cli.Flag {
	const group = "supply chain"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "sbom", Category: group, Destination: &o.SBOMs,
			Usage: "attach the bill of materials of the image in `FORMAT` (spdx|cyclonedx); can be repeated"},
		&cli.StringSliceFlag{Name: "sbom-file", Category: group, DefaultText: "none; the format is that of the first " +
			"--sbom, else spdx", Destination: &o.SBOMFiles,
			Usage: "write the bill of materials to `[FORMAT=]FILE`; can be repeated"},
		&cli.BoolFlag{Name: "provenance", Category: group, Destination: &o.Provenance,
			Usage: "attach how the image was built (SLSA provenance v1)"},
		&cli.StringFlag{Name: "builder-id", EnvVars: program.Env("builder-id"), Category: group,
			DefaultText: provenance.LocalBuilder, Usage: "`URI` of who builds, in the provenance", Destination: &o.BuilderID},
		&cli.BoolFlag{Name: "provenance-time", Category: group, Destination: &o.ProvenanceTime,
			Usage: "write into the provenance when the build began and ended, so that no two are equal"},
		o.LegacyFlag(),
	}
}

// LegacyFlag also writes attestations where verifiers before cosign 3 look for them.
func (o *Supply) LegacyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "legacy-attestations", Category: "signing", EnvVars: program.Env("legacy-attestations"),
		Usage:       "also write attestations to the .att tag, where cosign before version 3 looks for them",
		Destination: &o.LegacyAttestations}
}

// CheckNoDocuments refuses the flags of [Supply] in a command that builds no image. why says so, as in "with --plan, which
// builds no image".
func CheckNoDocuments(p *Session, why string) error {
	for _, f := range new(Supply).Flags() {
		if name := f.Names()[0]; p.GivenHere(name) {
			return cmdline.Usagef("--%s has no effect %s", name, why)
		}
	}
	return nil
}

// documents reads the flags. in is the input of the build, if it is a file or a directory.
func (o *Image) documents(p *Session, in string) (d publish.Documents, err error) {
	for flag, value := range map[string]string{"sbom": strings.Join(o.SBOMs.Value(), ""),
		"sbom-file": strings.Join(o.SBOMFiles.Value(), ""), "builder-id": o.BuilderID} {
		if p.GivenHere(flag) && value == "" {
			return d, cmdline.Usagef("--%s is empty", flag)
		}
	}
	if !o.Provenance {
		if err := p.refuse("has no effect without --provenance", "builder-id", "provenance-time"); err != nil {
			return d, err
		}
	}
	d = publish.Documents{SBOMFiles: o.SBOMFiles.Value(), Provenance: o.Provenance, ProvenanceTime: o.ProvenanceTime,
		BuilderID: o.BuilderID, LegacyAttestations: o.LegacyAttestations}
	if d.SBOMs, err = cmdline.List(o.SBOMs.Value()); err != nil {
		return d, err
	}
	if d.SBOM, err = DocumentOptions(); err != nil {
		return d, err
	}
	if d.Inventory, err = o.InventoryOptions(o.Jobs); err != nil || !d.Provenance {
		return d, err
	}
	d.Build, err = o.build(p, in)
	return d, err
}

// warnOfProvenance says what the provenance of an image does not prove.
func (o *Supply) warnOfProvenance(p *Session, signed bool) {
	if o.Provenance && o.BuilderID == "" && os.Getenv("CI") != "" {
		p.WarnOnce("--builder-id is not set: the provenance names " + provenance.LocalBuilder +
			" as the builder, which says nothing about this CI system")
	}
	if o.Provenance && !signed {
		p.WarnOnce("the provenance is not signed: anyone can write such a statement; --sign-key or --sign-keyless signs it")
	}
}
