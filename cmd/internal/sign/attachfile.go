package sign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// attachOptions are the flags of "attach".
type attachOptions struct {
	option.Keys
	option.Answer
	option.Registry
	kind, mediaType string
	annotations     cli.StringSlice
}

// AttachCommand returns "attach".
func AttachCommand(p *option.Session) *cli.Command {
	o := &attachOptions{}
	return &cli.Command{
		Name:      "attach",
		Usage:     "attach a file to an image",
		ArgsUsage: "IMAGE FILE",
		Description: `Attaches a file to an image in a registry, an OCI layout or an archive of one: as a
referrer, an artifact whose subject the image is. The image stays as it is. It is listed by the referrers API
of the registry, or else by the fallback tag. The artifact depends on the file and the flags alone: attaching
it again changes nothing. With --sign-key or --sign-keyless the artifact gets a signature of its own, a bundle;
"attest" signs a statement about the image.` +
			program.Examples("bindery attach oci:catalog.oci:v1 sbom.json --type application/vnd.cyclonedx+json",
				"bindery attach oci:catalog.oci:v1 tested.json --type application/vnd.example.report "+
					"--media-type application/json --annotation org.example.run=17"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringFlag{Name: "type", Usage: "artifact `TYPE`, such as application/spdx+json", Destination: &o.kind},
			&cli.StringFlag{Name: "media-type", Usage: "media `TYPE` of the file", DefaultText: "that of --type",
				Destination: &o.mediaType},
			&cli.StringSliceFlag{Name: "annotation", Destination: &o.annotations,
				Usage: "annotate the artifact with `KEY=VALUE`; can be repeated"},
		}, o.Keys.Flags("sign-key", "signing"), o.Answer.Flags(), o.AccessFlags()),
		Action: program.Exactly(2, p.Action(func(ctx context.Context, args []string) error {
			return attachFile(ctx, p, o, args[0], args[1])
		})),
	}
}

func attachFile(ctx context.Context, p *option.Session, o *attachOptions, name, file string) (err error) {
	format, err := o.Format()
	if err != nil {
		return err
	}
	artifact, err := o.artifact()
	if err != nil {
		return err
	}
	keys, err := o.Open(ctx, p, "sign-key")
	if err != nil {
		return err
	}
	dest, err := destinationOf(name)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	layer, err := fileLayer(ctx, file)
	if ctx.Err() != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if err != nil {
		return err
	}
	layer.MediaType = artifact.MediaType
	if layer.MediaType == "" {
		layer.MediaType = artifact.Type
	}
	artifact.Layers = []v1.Descriptor{layer}
	w, err := o.CopyOptions(p).OpenWriter(ctx, dest)
	if err != nil {
		return p.WithAttachmentHint(dest.String(), err)
	}
	defer func() { err = errors.Join(err, w.Discard()) }()
	signing := signature.NewSigning(signature.SignOptions{Keys: keys, Format: signature.FormatBundle, Created: artifact.Created})
	err = referrers.CheckTaken(ctx, w, w.Image.Top)
	if err == nil && keys != nil {
		var of v1.Descriptor
		if of, err = artifact.Descriptor(w.Image.Top); err == nil {
			err = signing.Check(ctx, of)
		}
	}
	if err != nil {
		return withReferrersHint(dest.String(), fmt.Errorf("%s: %w", dest, err))
	}
	content := store.Content{Open: func(_ context.Context, from int64) (io.ReadCloser, error) {
		return store.Skip(func() (io.ReadCloser, error) { return regularfile.OpenSeekable(file) }, from)
	}}
	if _, err := w.WriteBlob(ctx, layer, content); err != nil {
		return fmt.Errorf("%s: %w", dest, err)
	}
	made, err := referrers.Attach(ctx, w, w.Image.Top, artifact)
	if err == nil && keys != nil {
		err = signing.Attach(ctx, w, store.Image{Top: made})
	}
	if err == nil {
		err = w.Commit(ctx)
	}
	if err != nil {
		return withReferrersHint(dest.String(), fmt.Errorf("%s: %w", dest, err))
	}
	if format.IsDocument() {
		return p.PrintValue(format, AttachedFile{w.Image.Top.Digest, made.Digest, made.MediaType, made.ArtifactType,
			made.Annotations, layer, signature.Sorted(signing.Made())})
	}
	_, err = p.Stdout.Write([]byte(printable.Text(besideImage(w.Image, made.Digest)) + "\n"))
	return err
}

// withReferrersHint adds advice to the error of a place that takes no referrers.
func withReferrersHint(object string, err error) error {
	if !errors.Is(err, store.ErrNoReferrers) {
		return option.WithSigningHint(object, err)
	}
	return &cmdline.Error{Class: cmdline.Classify(err), Object: object, Err: err, Hint: "nothing was attached: copy the image to a " +
		"registry that lists referrers, or to a layout (oci:DIR)"}
}

// AttachedFile is the answer as JSON: the digest of the image, and the manifest that was attached to it.
type AttachedFile struct {
	Image        digest.Digest     `json:"image"`
	Digest       digest.Digest     `json:"digest"`
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	// File is the layer with the file.
	File v1.Descriptor `json:"file"`
	// Signatures are those of the artifact, if it was to be signed.
	Signatures []signature.Made `json:"signatures,omitempty"`
}

// mediaType is a media type without parameters (RFC 6838, section 4.2).
var mediaType = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}$`)

// artifact reads the flags of the artifact.
func (o *attachOptions) artifact() (referrers.Artifact, error) {
	a := referrers.Artifact{Type: o.kind, MediaType: o.mediaType}
	if a.Type == "" {
		e := cmdline.Usagef(`required flag(s) "type" not set`)
		e.Hint = "the type is a media type, such as application/spdx+json"
		return a, e
	}
	for flag, value := range map[string]string{"type": a.Type, "media-type": a.MediaType} {
		if value != "" && !mediaType().MatchString(value) {
			return a, cmdline.Usagef("invalid --%s value %q, expected a media type such as application/spdx+json", flag,
				value)
		}
	}
	var err error
	if a.Annotations, err = cmdline.Pairs("annotation", o.annotations.Value()); err != nil {
		return a, err
	}
	a.Created, err = program.SourceDate()
	return a, err
}

// fileLayer describes a file as a layer. Its name is in the annotation that ORAS restores files by.
func fileLayer(ctx context.Context, file string) (d v1.Descriptor, err error) {
	f, err := regularfile.OpenSeekable(file)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	digester := digest.SHA256.Digester()
	n, err := io.Copy(digester.Hash(), ctxio.Reader{Ctx: ctx, R: f})
	return v1.Descriptor{Digest: digester.Digest(), Size: n,
		Annotations: map[string]string{v1.AnnotationTitle: filepath.Base(file)}}, err
}
