package sign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/supply"
	"github.com/operator-bindery/bindery/supply/publish"
)

// signOptions are the flags of "sign".
type signOptions struct {
	option.Signing
	option.Answer
	option.Registry
}

// SignCommand returns "sign".
func SignCommand(p *option.Session) *cli.Command {
	o := &signOptions{}
	return &cli.Command{
		Name:      "sign",
		Usage:     "sign an image that exists",
		ArgsUsage: "IMAGE",
		Description: `Signs the image and, of an index, every image in it, in a registry, an OCI layout or an
archive of one. By default both forms are written: a .sig tag, which policies (policy.json) of podman, CRI-O
and OpenShift read, and a Sigstore bundle as a referrer, which cosign reads. A signature by the same key that
is there already is not made again, and the image's digest stays what it is. With --sign-keyless a bundle is
written, signed by the identity of a token; each run writes another one. The commands that write images sign with the
same flags.` +
			program.Examples("bindery sign registry.example.com/acme/catalog:v1 --sign-key release.key",
				"bindery sign oci:catalog.oci:v1 --sign-key release.key --sign-identity "+
					"registry.example.com/acme/catalog:v1"),
		Flags:  program.Flags(o.Signing.Flags(), o.Answer.Flags(), o.AccessFlags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return sign(ctx, p, o, args[0]) })),
	}
}

// attestOptions are the flags of "attest".
type attestOptions struct {
	option.Keys
	option.Supply
	option.Answer
	option.Registry
	kind, predicate string
}

// AttestCommand returns "attest".
func AttestCommand(p *option.Session) *cli.Command {
	o := &attestOptions{}
	return &cli.Command{
		Name:      "attest",
		Usage:     "attach a signed statement about an image",
		ArgsUsage: "IMAGE",
		Description: `Signs a statement about the image, an in-toto statement with a predicate of your own,
and attaches it as a Sigstore bundle. An attestation is never taken for a signature of the image. The type is
a URI or a short name.` +
			program.Examples("bindery attest registry.example.com/acme/catalog:v1 --type cyclonedx --predicate sbom.json "+
				"--sign-key release.key",
				"bindery attest oci:catalog.oci:v1 --type https://example.com/tested/v1 --predicate tested.json "+
					"--sign-key release.key"),
		Flags: program.Flags([]cli.Flag{
			&cli.StringFlag{Name: "type", Usage: "`TYPE` of the predicate, a URI or a short name " + predicateNames,
				Destination: &o.kind},
			&cli.StringFlag{Name: "predicate", Usage: "`FILE` with the predicate, a JSON object", Destination: &o.predicate},
			o.LegacyFlag(),
		}, o.Keys.Flags("sign-key", "signing"), o.Answer.Flags(), o.AccessFlags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return attest(ctx, p, o, args[0]) })),
	}
}

// predicateNames are the short names of predicate types, in the form that completion reads.
const predicateNames = "(spdxjson|cyclonedx|slsaprovenance|slsaprovenance1|custom|vuln|openvex|link)"

func sign(ctx context.Context, p *option.Session, o *signOptions, name string) error {
	keys, err := neededKeys(ctx, p, &o.Keys)
	if err != nil {
		return err
	}
	with, err := o.Options(p)
	if err != nil {
		return err
	}
	with.Keys = keys
	s := signature.NewSigning(with)
	return attachTo(ctx, p, &o.Registry, &o.Answer, name, s, s.Made)
}

func attest(ctx context.Context, p *option.Session, o *attestOptions, name string) error {
	predicateType, err := signature.ParsePredicateType(o.kind)
	switch {
	case o.kind == "" || o.predicate == "":
		return cmdline.Usagef("--type and --predicate are required")
	case err != nil:
		return cmdline.Usagef("--type: %w", err)
	case predicateType == signature.PredicateSign:
		return cmdline.Usagef("--type %s is that of signatures: \"sign\" makes them", predicateType)
	}
	keys, err := neededKeys(ctx, p, &o.Keys)
	if err != nil {
		return err
	}
	file := o.predicate
	predicate, err := regularfile.ReadNamed(ctx, file, maxPredicate)
	if err == nil {
		err = signature.CheckPredicate(predicate)
	}
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: file,
			Err: fmt.Errorf("--predicate %s: %w", file, err)}
	}
	created, err := program.SourceDate()
	if err != nil {
		return err
	}
	top := true
	a := &signature.Attesting{Keys: keys, Type: predicateType,
		Legacy: o.LegacyAttestations, Created: created,
		AttAlone: p.AttAlone,
		// The statement is about what the name refers to. The images of an index are attested by their digests.
		Predicate: func(context.Context, v1.Descriptor) (json.RawMessage, error) {
			if !top {
				return nil, nil
			}
			top = false
			return predicate, nil
		}}
	return attachTo(ctx, p, &o.Registry, &o.Answer, name, a, a.Made)
}

// maxPredicate is the largest file with a predicate in bytes.
const maxPredicate = 12 << 20

// neededKeys opens the keys of --sign-key, of which there must be one.
func neededKeys(ctx context.Context, p *option.Session, of *option.Keys) (signature.Keys, error) {
	keys, err := of.Open(ctx, p, "sign-key")
	if err == nil && keys == nil {
		e := cmdline.Usagef("required flag(s) \"sign-key\" not set")
		e.Hint = "\"bindery keys generate\" makes a key; --sign-keyless signs by an identity, without one"
		return nil, e
	}
	return keys, err
}

// attachTo attaches something to an image, and prints what was made.
func attachTo(ctx context.Context, p *option.Session, at *option.Registry, answer *option.Answer, name string,
	a store.Attachment, made func() []signature.Made) (err error) {
	format, err := answer.Format()
	if err != nil {
		return err
	}
	dest, err := destinationOf(name)
	if err != nil {
		return err
	}
	ctx, cancel := at.WithTimeout(ctx)
	defer cancel()
	w, err := at.CopyOptions(p).OpenWriter(ctx, dest)
	if err != nil {
		return p.WithAttachmentHint(dest.String(), err)
	}
	defer func() { err = errors.Join(err, w.Discard()) }()
	if err := a.Attach(ctx, w, w.Image); err != nil {
		return option.WithSigningHint(name, fmt.Errorf("%s: %w", dest, err))
	}
	if err := w.Commit(ctx); err != nil {
		return fmt.Errorf("%s: %w", dest, err)
	}
	return printMade(p, format, w.Image, signature.Sorted(made()))
}

// destinationOf reads the name of an image that is written to: TRANSPORT:DETAILS or a name in a registry.
func destinationOf(name string) (transport.Destination, error) {
	d, err := program.Transports.Parse(name)
	if err == nil {
		return d, publish.CheckRegistry(d)
	}
	transport, _, named := strings.Cut(name, ":")
	if remote, rerr := program.Transports.Parse("docker://" + name); rerr == nil {
		if refused := publish.CheckRegistry(remote); refused == nil || named && strings.Contains(transport, "/") {
			return remote, refused
		}
	}
	return d, &cmdline.Error{Class: cmdline.ClassUsage, Object: name, Err: err}
}

// MadeForImage is the answer of "sign" and "attest" as JSON.
type MadeForImage struct {
	// Image is the digest of the image.
	Image string           `json:"image"`
	Made  []signature.Made `json:"made"`
}

// printMade prints signatures or attestations.
func printMade(p *option.Session, format program.Format, image store.Image, made []signature.Made) error {
	if format.IsDocument() {
		return p.PrintValue(format, MadeForImage{image.Top.Digest.String(), append([]signature.Made{}, made...)})
	}
	var b strings.Builder
	for _, m := range made {
		did := "wrote"
		if m.Found {
			did = "found"
		}
		fmt.Fprintf(&b, "%s %s of %s by %s", did, m.Form, m.Subject, signedBy(m.CertificateIdentity, "key "+m.Key))
		if m.Identity != "" {
			fmt.Fprintf(&b, " for %s", m.Identity)
		}
		if m.PredicateType != "" {
			fmt.Fprintf(&b, " of type %s", m.PredicateType)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintln(&b, besideImage(image, image.Top.Digest))
	_, err := p.Stdout.Write([]byte(printable.Text(b.String())))
	return err
}

// signedBy says who made a signature: an identity, or a key if no issuer vouches for one.
func signedBy(who signature.CertificateIdentity, key string) string {
	if who.Issuer != "" {
		return who.Name + " (" + who.Issuer + ")"
	}
	return key
}

// besideImage returns the name of a manifest in the repository of an image, or its digest alone if that has no name.
func besideImage(image store.Image, d digest.Digest) string {
	if image.Name == "" {
		return d.String()
	}
	return supply.Repository(image.Name) + "@" + d.String()
}
