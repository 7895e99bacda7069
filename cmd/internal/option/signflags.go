package option

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
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

// signingFlags is what [SignFlags] ask for.
type signingFlags struct {
	keys   signature.Keys
	signer *signature.Signing
}

// Prepare reads the flags and begins to open the keys. Destinations that keep no signatures are refused before
// any work, and so is an image without a name that the signatures could be for.
func (o *Signing) Prepare(ctx context.Context, p *Session, t Target) error {
	keys, err := o.Open(ctx, p, "sign-key")
	if err != nil {
		return err
	}
	if keys == nil {
		return checkNotSigning(p)
	}
	with, err := o.Options(p)
	if err != nil {
		return err
	}
	with.Keys = keys
	if len(with.Identities) == 0 {
		for _, name := range t.Names {
			if hasRegistry(name) {
				with.Names = append(with.Names, name)
			}
		}
	}
	for _, d := range t.Destinations {
		if err := program.Transports.CheckAttachments(d); err != nil {
			return p.WithAttachmentHint(d.String(), err)
		}
		if !d.InRegistry() && with.Format != signature.FormatBundle && len(with.Identities)+len(with.Names) == 0 {
			return noIdentity(d.String())
		}
	}
	p.Signing = &signingFlags{keys: keys, signer: signature.NewSigning(with)}
	return nil
}

// noIdentity is the error of an image without a name in a registry.
func noIdentity(object string) error {
	return &cmdline.Error{Class: cmdline.ClassUsage, Object: object, Err: signature.ErrNoIdentity,
		Hint: "name the image with its registry (-t registry.example.com/acme/catalog:v1), give --sign-identity, or " +
			"write --sign-format bundle only"}
}

// checkNotSigning refuses flags about signatures without a key: the image would not be signed, and nothing would say so.
func checkNotSigning(p *Session) error {
	return p.refuse("has no effect without --sign-key or --sign-keyless", "sign-format", "sign-identity",
		"sign-passphrase-file", "allow-plain-key", "legacy-attestations")
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

// opened waits until the keys are open.
func (s *signingFlags) opened() error {
	if s == nil {
		return nil
	}
	_, err := s.keys(context.Background()) // it takes a part of a second and is not interrupted
	return err
}

// Attachments returns what signs an image while it is copied.
func (s *signingFlags) Attachments() []store.Attachment {
	if s == nil {
		return nil
	}
	return []store.Attachment{s.signer}
}

// made returns the signatures in a stable order; none if nothing was signed.
func (s *signingFlags) made() []signature.Made {
	if s == nil {
		return nil
	}
	return SortedMade(s.signer.Made())
}

// SortedMade sorts the signatures of all destinations, and removes repetitions, so that the order of the destinations
// does not matter. A signature that existed at one destination and was made at another one is listed as both.
func SortedMade(made []signature.Made) []signature.Made {
	key := func(m signature.Made) string {
		return fmt.Sprint(m.Subject, m.Form, m.PredicateType, m.Key, m.Identity, m.Found)
	}
	slices.SortFunc(made, func(a, b signature.Made) int { return strings.Compare(key(a), key(b)) })
	return slices.Compact(made)
}

// WithSigningHint adds advice to errors of signing.
func WithSigningHint(object string, err error) error {
	var service *keyless.ServiceError
	switch {
	case errors.Is(err, signature.ErrNoIdentity):
		return noIdentity(object)
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

// countMade counts signatures and attestations in words.
func countMade(made []signature.Made) string {
	signatures, attestations, found := 0, 0, 0
	for _, m := range made {
		if m.PredicateType == "" {
			signatures++
		} else {
			attestations++
		}
		if m.Found {
			found++
		}
	}
	var parts []string
	if signatures > 0 {
		parts = append(parts, program.Count(signatures, "signature"))
	}
	if attestations > 0 {
		parts = append(parts, program.Count(attestations, "attestation"))
	}
	text := strings.Join(parts, ", ")
	if found > 0 {
		text += fmt.Sprintf("; %d of them found", found)
	}
	return text
}
