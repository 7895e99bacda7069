package option

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/supply"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/provenance"
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
	client, err := o.Client(ctx, p)
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

// PrepareSupplies reads the flags. Destinations that keep no attachments are refused before any work, and the
// sources of the build are read for its provenance. in is the input of the build, if it is a file or a directory.
func (o *Image) PrepareSupplies(ctx context.Context, p *Session, t Target, in string) (err error) {
	for flag, value := range map[string]string{"sbom": strings.Join(o.SBOMs.Value(), ""),
		"sbom-file": strings.Join(o.SBOMFiles.Value(), ""), "builder-id": o.BuilderID} {
		if p.GivenHere(flag) && value == "" {
			return cmdline.Usagef("--%s is empty", flag)
		}
	}
	s := &supplies{provenance: o.Provenance, times: o.ProvenanceTime, base: o.baseName(),
		locked: o.Lock != "", client: func() *images.Client { return p.Images }}
	if s.formats, err = o.formats(); err != nil {
		return err
	}
	if s.files, err = o.Supply.files(s.formats, in); err != nil {
		return err
	}
	for _, flag := range []string{"builder-id", "provenance-time"} {
		if p.GivenHere(flag) && !s.provenance {
			return cmdline.Usagef("--%s has no effect without --provenance", flag)
		}
	}
	if len(s.formats) == 0 && len(s.files) == 0 && !s.provenance {
		return nil
	}
	if len(s.formats) > 0 || s.provenance {
		for _, d := range t.Destinations {
			if err := program.Transports.CheckAttachments(d); err != nil {
				return p.WithAttachmentHint(d.String(), err)
			}
		}
	}
	if s.options, err = DocumentOptions(); err != nil {
		return err
	}
	if s.examine, err = o.InventoryOptions(o.Jobs); err != nil {
		return err
	}
	s.signing = &supply.Signing{Legacy: o.LegacyAttestations, AttAlone: p.AttAlone, Created: s.options.Created}
	if p.Signing != nil {
		s.signing.Keys = p.Signing.keys
	}
	s.setNames(t)
	if s.provenance {
		if err := o.prepareProvenance(ctx, p, s, in); err != nil {
			return err
		}
	}
	p.supplies = s
	return nil
}

// formats reads --sbom.
func (o *Supply) formats() (formats []sbom.Format, err error) {
	list, err := cmdline.List(o.SBOMs.Value())
	if err != nil {
		return nil, err
	}
	for _, text := range list {
		f, err := sbom.ParseFormat(text)
		if err != nil {
			return nil, cmdline.Usagef("invalid --sbom value %.80q, expected (spdx|cyclonedx)", text)
		}
		if !slices.Contains(formats, f) {
			formats = append(formats, f)
		}
	}
	return formats, nil
}

// files reads --sbom-file. A file without a format has the first one of --sbom that no file before it has.
func (o *Supply) files(formats []sbom.Format, in string) (files []sbomFile, err error) {
	left := slices.Clone(formats)
	for _, text := range o.SBOMFiles.Value() {
		f := sbomFile{path: text}
		if name, path, ok := strings.Cut(text, "="); ok {
			if format, err := sbom.ParseFormat(name); err == nil {
				f = sbomFile{format, path}
			}
		}
		if f.format == "" {
			f.format = sbom.SPDX
			if len(left) > 0 {
				f.format = left[0]
			}
		}
		left = slices.DeleteFunc(left, func(used sbom.Format) bool { return used == f.format })
		if f.path == "" {
			return nil, cmdline.Usagef("--sbom-file %q names no file", text)
		}
		if err := CheckResult("sbom-file", f.path, in); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files,
			func(o sbomFile) bool { return filepath.Clean(o.path) == filepath.Clean(f.path) }) {
			return nil, cmdline.Usagef("--sbom-file %q is given twice", f.path)
		}
		files = append(files, f)
	}
	return files, nil
}

// prepareProvenance notes the parameters and the sources of a build before it begins.
func (o *Image) prepareProvenance(ctx context.Context, p *Session, s *supplies, in string) (err error) {
	s.build.Builder = o.BuilderID
	if s.build.Builder != "" && !isURI(s.build.Builder) {
		return cmdline.Usagef("invalid --builder-id value %.200q, expected a URI", s.build.Builder)
	}
	if redact.Text(s.build.Builder) != s.build.Builder {
		return cmdline.Usagef("--builder-id has credentials, and everyone can read it in the provenance")
	}
	if s.build.Builder == "" && os.Getenv("CI") != "" {
		p.WarnOnce("--builder-id is not set: the provenance names " + provenance.LocalBuilder +
			" as the builder, which says nothing about this CI system")
	}
	if s.signing.Keys == nil {
		p.WarnOnce("the provenance is not signed: anyone can write such a statement; --sign-key or --sign-keyless signs it")
	}
	if s.times {
		s.build.Started = time.Now()
	}
	s.program = programDigest(ctx)
	s.build.Command = strings.TrimPrefix(p.Line.Name(p.Command.App.HelpName), p.Command.App.HelpName+" ")
	if s.build.Parameters, err = o.parameters(p, s.build.Command); err != nil {
		return err
	}
	in = cmp.Or(in, p.Command.Args().First())
	if s.build.Dependencies, err = buildSources(ctx, p, in); err != nil {
		return err
	}
	for _, d := range s.build.Dependencies {
		if d.Name == sourceName(in) {
			s.build.Parameters["source"] = map[string]any{"path": portable(in),
				"digest": map[string]string{d.Digest.Algorithm().String(): d.Digest.Encoded()}}
		}
	}
	return nil
}

// programDigest begins to read this program's file, beside the build, and returns what waits for its digest.
func programDigest(ctx context.Context) func() (digest.Digest, error) {
	wait := sync.OnceValues(func() (digest.Digest, error) {
		path, err := os.Executable()
		if err != nil {
			return "", err
		}
		return provenance.File(ctx, os.DirFS(filepath.Dir(path)), filepath.Base(path))
	})
	go func() { _, _ = wait() }() // the error is returned to the one who waits
	return wait
}

// isURI tells whether a text has a scheme and no blanks.
func isURI(text string) bool {
	scheme, rest, ok := strings.Cut(text, ":")
	return ok && scheme != "" && rest != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
