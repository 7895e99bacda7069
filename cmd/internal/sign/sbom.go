package sign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/supply"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// sbomOptions are the flags of "sbom".
type sbomOptions struct {
	option.Images
	output, format, to, name string
	jobs                     int
}

// SBOMCommand returns "sbom".
func SBOMCommand(p *option.Session) *cli.Command {
	o := &sbomOptions{}
	return &cli.Command{
		Name:      "sbom",
		Usage:     "write the bill of materials (SBOM) of an image",
		ArgsUsage: "IMAGE",
		Description: `Writes what is in an image as an SPDX 2.3 or CycloneDX 1.6 document in JSON: of a
catalog its packages, bundles, related images and the Go modules of the server, of a bundle its operator and
the images that it needs, of other images the layers. Layers whose files are not described are listed by their
digests. An image that is named by a tag alone has no digest in the document: its content is not known.

The document is a function of the image and its name. Its time is SOURCE_DATE_EPOCH, or 1970. It is the
document that --sbom attaches to an image when it is built.` +
			program.Examples("bindery sbom oci:catalog.oci:v1", "bindery sbom oci:etcd.oci:v1 -o cyclonedx --to etcd.json",
				"bindery sbom oci:catalog.oci:v1 --name registry.example.com/acme/catalog"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, DefaultText: string(sbom.SPDX), Destination: &o.output,
				Usage: "`FORMAT` of the document (spdx|cyclonedx)"},
			&cli.StringFlag{Name: "format", Usage: "alias of --output", Hidden: true, Destination: &o.format},
			&cli.StringFlag{Name: "to", Usage: "write the document to `FILE`", DefaultText: "standard output",
				Destination: &o.to},
			&cli.StringFlag{Name: "name", Destination: &o.name, DefaultText: "that of the image, if it is in a registry or a store",
				Usage: "`REPOSITORY` that the document names the image by"},
			&cli.StringFlag{Name: "platform", Destination: &o.Platform, DefaultText: "the index with all its images",
				Usage: "describe the image for `OS/ARCH` of an index", Category: "content"},
			option.JobsFlag(&o.jobs, "work"),
		}, o.Images.Flags()...),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return writeSBOM(ctx, p, o, args[0]) })),
	}
}

func writeSBOM(ctx context.Context, p *option.Session, o *sbomOptions, ref string) (err error) {
	format, file, err := o.document(p)
	if err != nil {
		return err
	}
	name, err := o.repository()
	if err != nil {
		return err
	}
	if err := atomicfs.CheckResult("To", file, ref); err != nil {
		return err
	}
	survey, err := o.Survey(ctx, p, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, survey.Close()) }()
	subject, err := o.subject(survey)
	if err != nil {
		return err
	}
	with, err := o.InventoryOptions(o.jobs)
	if err != nil {
		return err
	}
	if subject != survey.Digest {
		with.Only = subject
	}
	found, err := inventory.Examine(ctx, survey, with)
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: redact.Text(ref), Err: err}
	}
	if name == "" {
		client, err := p.Client(ctx, &o.Images)
		if err != nil {
			return err
		}
		if name, err = nameOf(ctx, client, ref, found.Repository, survey.Digest); err != nil {
			return err
		}
	}
	written, err := option.DocumentOptions()
	if err != nil {
		return err
	}
	of, ok := found.Of(subject, name)
	if !ok {
		return fmt.Errorf("%w: no image %s in the index", images.ErrInvalid, subject)
	}
	return writeDocument(ctx, p, file, func(w io.Writer) error { return format.Write(w, of, written) })
}

// document reads the format of the document and the file to write it to. --output was the name of the file once,
// and --format that of the format: a value with a dot or a slash is still a file.
func (o *sbomOptions) document(p *option.Session) (sbom.Format, string, error) {
	text, file := cmp.Or(o.output, o.format, string(sbom.SPDX)), o.to
	if strings.ContainsAny(text, "./") && !p.Given("to") {
		text, file = cmp.Or(o.format, string(sbom.SPDX)), text
	}
	format, err := sbom.ParseFormat(text)
	if err != nil {
		return "", "", cmdline.Usagef("invalid --output value %.80q, expected (spdx|cyclonedx)", text)
	}
	return format, file, nil
}

// nameOf returns the repository that documents name an image by: that of the name it was opened by, else what a layout
// says of it: its name there, or that in a bill of materials that was attached when it was built.
func nameOf(ctx context.Context, client *images.Client, ref, repository string, top digest.Digest) (_ string, err error) {
	dest, perr := program.Transports.Parse(ref)
	if repository != "" || perr != nil || dest.InRegistry() || program.Transports.CheckAttachments(dest) != nil {
		return repository, nil
	}
	at, err := openAttached(ctx, client, ref)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	if at.image.Name != "" {
		return supply.Repository(at.image.Name), nil
	}
	list, err := at.Referrers(ctx, top, nil)
	if err != nil {
		return "", err
	}
	for _, d := range list {
		named, err := reference.ParseNormalizedNamed(d.Annotations[supply.NameAnnotation])
		if err == nil && reference.IsNameOnly(named) {
			return named.Name(), nil
		}
	}
	return "", nil
}

// repository reads --name.
func (o *sbomOptions) repository() (string, error) {
	if o.name == "" {
		return "", nil
	}
	named, err := reference.ParseNormalizedNamed(o.name)
	if err != nil || !reference.IsNameOnly(named) {
		return "", cmdline.Usagef("invalid --name value %.200q, expected REGISTRY/REPOSITORY without a tag", o.name)
	}
	return named.Name(), nil
}

// subject returns the digest of what the document describes: the image for --platform, else the whole.
func (o *sbomOptions) subject(s *images.Survey) (digest.Digest, error) {
	text := o.Platform
	if text == "" {
		return s.Digest, nil
	}
	want, err := option.ParsePlatform(text)
	if err != nil {
		return "", err
	}
	var have []string
	for _, i := range s.Images {
		if platform.Matches(i.Platform, want) {
			return i.Digest, nil
		}
		have = append(have, redact.Text(fmt.Sprintf("%.80s", platform.Name(i.Platform))))
	}
	return "", &cmdline.Error{Class: cmdline.ClassInput, Object: redact.Text(s.Name),
		Err:  fmt.Errorf("there is no image for %s in it", text),
		Hint: "it has images for " + strings.Join(have, ", ")}
}

// writeDocument writes a document to a file, or to standard output if there is no file, when all of it is there.
func writeDocument(ctx context.Context, p *option.Session, file string, write func(io.Writer) error) (err error) {
	if file == "" {
		var spool cmdline.Spool
		defer func() { err = errors.Join(err, spool.Close()) }()
		if err := write(&spool); err != nil {
			return err
		}
		if err := p.SaveLock(); err != nil {
			return err
		}
		return spool.Flush(ctx, p.Stdout)
	}
	f, err := atomicfs.NewFile(file, 0o666)
	if err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if err := write(f); err != nil {
		return err
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	return f.Commit()
}
