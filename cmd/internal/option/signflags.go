package option

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/supply/publish"
)

// Signing is who signs an image, and in which form.
type Signing struct {
	Keys
	SignFormat     string
	SignIdentities cli.StringSlice
}

// Flags are the flags of every command that writes images.
func (o *Signing) Flags() []cli.Flag {
	return append(o.Keys.Flags("sign-key", "signing"), o.FormFlags()...)
}

// FormFlags are the flags about the signatures themselves.
func (o *Signing) FormFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "sign-format", DefaultText: "both, by a key; bundle, by an identity", EnvVars: program.Env("sign-format"),
			Category: "signing", Destination: &o.SignFormat, Usage: "`FORM` of the signatures (sig|bundle|both): .sig " +
				"tags, which policies (policy.json) read, or Sigstore bundles as referrers"},
		&cli.StringSliceFlag{Name: "sign-identity", EnvVars: program.Env("sign-identity"), Category: "signing",
			DefaultText: "the image's name", Destination: &o.SignIdentities,
			Usage: "`NAME` (REPOSITORY:TAG) that the .sig signatures are for"},
	}
}

// Prepare reads the flags and begins to open the keys; nil without keys.
func (o *Signing) Prepare(ctx context.Context, p *Session) (*signature.SignOptions, error) {
	keys, err := o.Open(ctx, p, "sign-key")
	if err != nil {
		return nil, err
	}
	if keys == nil {
		// The image would not be signed, and nothing would say so.
		return nil, p.refuse("has no effect without --sign-key or --sign-keyless", "sign-format", "sign-identity",
			"sign-passphrase-file", "allow-plain-key", "legacy-attestations")
	}
	with, err := o.Options(p)
	with.Keys = keys
	return &with, err
}

// Attachments returns what signs images with a target while they are copied.
func (o *Signing) Attachments(ctx context.Context, p *Session, t publish.Target) ([]store.Attachment, error) {
	with, err := o.Prepare(ctx, p)
	if with == nil || err != nil {
		return nil, err
	}
	signer, err := publish.Signer(*with, t, program.Transports)
	if err != nil {
		return nil, p.withPlaceHint(err)
	}
	return []store.Attachment{signer}, nil
}

// Options reads the flags about the signatures themselves.
func (o *Signing) Options(p *Session) (with signature.SignOptions, err error) {
	if with.Format, err = signature.ParseFormat(o.SignFormat); err != nil {
		return with, cmdline.Usagef("invalid --sign-format value %q, expected (sig|bundle|both)", o.SignFormat)
	}
	switch {
	case !o.SignKeyless:
	case o.SignFormat == "":
		with.Format = signature.FormatBundle
	case with.Format != signature.FormatBundle && o.found.SignedTimeLog == "":
		e := cmdline.Usagef("--sign-format %s: %w", o.SignFormat, keyless.ErrNoSignedTime)
		e.Hint = "leave out --sign-format, or name a log of version 1 with --rekor-url"
		return with, e
	}
	if o.SignFormat == "" && !o.SignKeyless {
		with.SigAlone = func(err error) {
			p.WarnOnce(fmt.Sprintf("signed by .sig tags alone, which policies and cosign read: %v; --sign-format sig says so without "+
				"this warning", redact.Error(err)))
		}
	}
	if with.Identities, err = cmdline.List(o.SignIdentities.Value()); err != nil {
		return with, err
	}
	for _, name := range with.Identities {
		identity, err := signature.ParseIdentity(name)
		if err != nil || !identity.Exact() {
			return with, cmdline.Usagef("invalid --sign-identity value %q, expected REPOSITORY:TAG", name)
		}
	}
	with.Creator = "bindery " + version.Release()
	with.Created, err = program.SourceDate()
	return with, err
}

// AttAlone warns that an image is attested by the .att tag alone, as [signature.Attesting] says.
func (p *Session) AttAlone(err error) {
	p.WarnOnce(fmt.Sprintf("attested by the .att tag alone, which cosign before version 3 reads: %v", redact.Error(err)))
}

// withPlaceHint adds advice to errors about destinations that keep no signatures, or that have no name for them.
func (p *Session) withPlaceHint(err error) error {
	var place *publish.PlaceError
	if !errors.As(err, &place) {
		return err
	}
	return WithSigningHint(place.Place, p.WithAttachmentHint(place.Place, err))
}

// WithAttachmentHint adds to an error about a place that keeps no attachments what the command can do instead.
func (p *Session) WithAttachmentHint(object string, err error) error {
	if !errors.Is(err, transport.ErrNoAttachments) {
		return err
	}
	e := &cmdline.Error{Class: cmdline.ClassUsage, Object: object, Err: err}
	switch {
	case p.HasFlag("with"):
		e.Hint = "--with none copies the image alone"
	case p.HasFlag("sbom-file"):
		e.Hint = "write the image to one of these, and \"bindery copy --with none\" copies it from there; --sbom-file " +
			"writes the bill of materials to a file for any destination"
	default:
		e.Hint = "copy the image to one of these with \"bindery copy\" first"
	}
	return e
}

// WithSigningHint adds advice to errors of signing.
func WithSigningHint(object string, err error) error {
	var service *keyless.ServiceError
	switch {
	case errors.Is(err, signature.ErrNoIdentity):
		return &cmdline.Error{Class: cmdline.ClassUsage, Object: object, Err: signature.ErrNoIdentity,
			Hint: "name the image with its registry (-t registry.example.com/acme/catalog:v1), give --sign-identity, or " +
				"write --sign-format bundle only"}
	case errors.Is(err, store.ErrNoReferrers):
		return &cmdline.Error{Class: cmdline.Classify(err), Object: object, Err: err, Hint: "the registry keeps no bundles for this " +
			"image: --sign-format sig signs by the .sig tag alone, and attestations need --legacy-attestations"}
	case errors.Is(err, signature.ErrNotVerified):
		return &cmdline.Error{Class: cmdline.Classify(err), Object: object, Err: err, Hint: "nothing was published: look at the clocks " +
			"of the certificate authority, of the log and of the timestamp authority"}
	case errors.As(err, &service):
		return &cmdline.Error{Class: cmdline.ClassNetwork, Object: service.URL, Err: err, Hint: map[string]string{
			"fulcio-url": "--fulcio-url must be one that knows the issuer of the token and is its audience, which is sigstore at " +
				"the public instance",
			"rekor-url": "--rekor-url is the address without a path, and --rekor-version that of its API",
			"tsa-url":   "--tsa-url is the whole address with its path, such as https://HOST/api/v1/timestamp",
		}[service.Flag]}
	}
	return err
}
