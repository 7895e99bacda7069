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
func (p *Session) Survey(c *cli.Context, ref string) (*images.Survey, error) {
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
	client, err := p.Client(c)
	if err != nil {
		return nil, err
	}
	at, err := client.Open(c.Context, ref)
	if err != nil {
		return nil, err
	}
	survey, err := at.Survey(c.Context)
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

// InventoryOptions reads the flags about reading images.
func (p *Session) InventoryOptions(c *cli.Context) (inventory.Options, error) {
	limits, err := ImageLimits(c)
	return inventory.Options{Limits: limits, Jobs: c.Int("jobs"), Release: version.Release()}, err
}

// DocumentOptions returns what documents say of this program and the time.
func DocumentOptions() (sbom.Options, error) {
	created, err := program.SourceDate()
	return sbom.Options{Version: version.Release(), Created: created}, err
}

// LegacyFlag also writes attestations where verifiers before cosign 3 look for them.
func LegacyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "legacy-attestations", Category: "signing", EnvVars: program.Env("legacy-attestations"),
		Usage: "also write attestations to the .att tag, where cosign before version 3 looks for them"}
}

// supplyFlags say what is attached to the image that a command builds. They are the same in every command that builds
// images.
func supplyFlags() []cli.Flag {
	const group = "supply chain"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "sbom", Category: group,
			Usage: "attach the bill of materials of the image in `FORMAT` (spdx|cyclonedx); can be repeated"},
		&cli.StringSliceFlag{Name: "sbom-file", Category: group, DefaultText: "none; the format is that of the first " +
			"--sbom, else spdx",
			Usage: "write the bill of materials to `[FORMAT=]FILE`; can be repeated"},
		&cli.BoolFlag{Name: "provenance", Category: group,
			Usage: "attach how the image was built (SLSA provenance v1)"},
		&cli.StringFlag{Name: "builder-id", EnvVars: program.Env("builder-id"), Category: group,
			DefaultText: provenance.LocalBuilder, Usage: "`URI` of who builds, in the provenance"},
		&cli.BoolFlag{Name: "provenance-time", Category: group,
			Usage: "write into the provenance when the build began and ended, so that no two are equal"},
		LegacyFlag(),
	}
}

// givenHere tells whether a flag is on the command line, and not in the environment for all commands.
func givenHere(c *cli.Context, flag string) bool {
	return c.IsSet(flag) && os.Getenv(program.Env(flag)[0]) == ""
}

// CheckNoDocuments refuses [supplyFlags] of a command that builds no image. why says so, as in "with --plan, which
// builds no image".
func CheckNoDocuments(c *cli.Context, why string) error {
	for _, f := range supplyFlags() {
		if name := f.Names()[0]; givenHere(c, name) {
			return cmdline.Usagef("--%s has no effect %s", name, why)
		}
	}
	return nil
}

// PrepareSupplies reads [supplyFlags]. Destinations that keep no attachments are refused before any work, and the
// sources of the build are read for its provenance. in is the input of the build, if it is a file or a directory.
func (p *Session) PrepareSupplies(c *cli.Context, t Target, in string) (err error) {
	for _, flag := range []string{"sbom", "sbom-file", "builder-id"} {
		if givenHere(c, flag) && strings.Trim(strings.Join(c.StringSlice(flag), "")+c.String(flag), "[]") == "" {
			return cmdline.Usagef("--%s is empty", flag)
		}
	}
	s := &supplies{provenance: c.Bool("provenance"), times: c.Bool("provenance-time"), base: baseOf(c),
		locked: c.String("lock") != "", client: func() *images.Client { return p.Images }}
	if s.formats, err = sbomFormats(c); err != nil {
		return err
	}
	if s.files, err = sbomFiles(c, s.formats, in); err != nil {
		return err
	}
	for _, flag := range []string{"builder-id", "provenance-time"} {
		if givenHere(c, flag) && !s.provenance {
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
	if s.examine, err = p.InventoryOptions(c); err != nil {
		return err
	}
	s.signing = &supply.Signing{Legacy: c.Bool("legacy-attestations"), Created: s.options.Created}
	if p.Signing != nil {
		s.signing.Keys = p.Signing.keys
	}
	s.setNames(t)
	if s.provenance {
		if err := p.prepareProvenance(c, s, in); err != nil {
			return err
		}
	}
	p.supplies = s
	return nil
}

// sbomFormats reads --sbom.
func sbomFormats(c *cli.Context) (formats []sbom.Format, err error) {
	list, err := cmdline.List(c.StringSlice("sbom"))
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

// sbomFiles reads --sbom-file. A file without a format has the first one of --sbom that no file before it has.
func sbomFiles(c *cli.Context, formats []sbom.Format, in string) (files []sbomFile, err error) {
	left := slices.Clone(formats)
	for _, text := range c.StringSlice("sbom-file") {
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
func (p *Session) prepareProvenance(c *cli.Context, s *supplies, in string) (err error) {
	s.build.Builder = c.String("builder-id")
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
		p.WarnOnce("the provenance is not signed: anyone can write such a statement; --sign-key signs it")
	}
	if s.times {
		s.build.Started = time.Now()
	}
	s.program = programDigest(c.Context)
	s.build.Command = strings.TrimPrefix(p.Line.Name(c.App.HelpName), c.App.HelpName+" ")
	if s.build.Parameters, err = buildParameters(c, s.build.Command); err != nil {
		return err
	}
	in = cmp.Or(in, c.Args().First())
	if s.build.Dependencies, err = buildSources(c, in); err != nil {
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
