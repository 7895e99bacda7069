package sign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
)

// signatureOptions make "verify" look at signatures instead of the content of the image.
type signatureOptions struct {
	option.Certificates
	keys           cli.StringSlice
	signatures     bool
	kind, identity string
}

func (o *signatureOptions) flags() []cli.Flag {
	const group = "signatures"
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "key", Category: group, Destination: &o.keys,
			Usage: "verify signatures with the public key in `FILE` (PEM); can be repeated: any one suffices"},
		&cli.BoolFlag{Name: "signatures", Category: group, Destination: &o.signatures,
			Usage: "verify signatures by the policy (--policy, else the system's policy.json)"},
		&cli.StringFlag{Name: "type", Category: group, Destination: &o.kind,
			Usage: "verify attestations with this `TYPE` of predicate, a URI or a short name " +
				predicateNames},
		&cli.StringFlag{Name: "identity", Category: group, Destination: &o.identity,
			DefaultText: "the name of the image, in a registry",
			Usage:       "`NAME` that .sig signatures must be for: REPOSITORY:TAG, or REPOSITORY for any tag"},
	}, o.Certificates.Flags()...)
}

// asked tells whether the flags ask for signatures.
func (o *signatureOptions) asked(p *option.Session) bool { return o.bySigner(p) || o.signatures }

// bySigner tells whether the flags name who must have signed.
func (o *signatureOptions) bySigner(p *option.Session) bool {
	return p.Given("key") || o.Certificates.Given(p)
}

// verifySignatures verifies the signatures or attestations of an image, and nothing else of it.
func verifySignatures(ctx context.Context, p *option.Session, o *inspectOptions, name string) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	if !o.bySigner(p) {
		return verifyByPolicy(ctx, p, o, name, format)
	}
	if o.signatures && p.Given("policy") {
		return cmdline.Usagef("--signatures --policy cannot be combined with --key or --certificate-identity: one of them decides")
	}
	with, files, err := o.options(ctx, p)
	if err != nil {
		return err
	}
	if with.Identities, err = o.Verifier(ctx, p, &o.TrustedRoot); err != nil {
		return err
	}
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	open := openAttached
	if p.Given("trusted-key") || p.Given("trusted-identity") || o.Policy != "" {
		open = openAccepted
	}
	at, err := open(ctx, client, name)
	if err != nil {
		return err
	}
	defer at.Close()
	image := at.image
	// The name of an image in a layout is not where it will be pulled from: the identity is reported only.
	if with.Identity == (signature.Identity{}) && at.inRegistry {
		if with.Identity, err = signature.ParseIdentity(image.Name); err != nil {
			return err
		}
	}
	report, err := with.Verify(ctx, at, image)
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: name, Err: fmt.Errorf("image %q: %w", name, err)}
	}
	if format.IsDocument() {
		err = p.PrintValue(format, report)
	} else {
		err = printVerified(p, report, files, with)
	}
	if err != nil {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: name,
			Err: fmt.Errorf("write the answer about image %q: %w", name, err)}
	}
	if !report.Verified {
		return &cmdline.ExitStatus{Status: 1}
	}
	return p.SaveLock()
}

// options reads the flags about keys, and returns the files of the keys by their fingerprints.
func (o *signatureOptions) options(ctx context.Context, p *option.Session) (with signature.VerifyOptions, files map[string]string, err error) {
	if with.Keys, files, err = option.PublicKeys(ctx, p, "key", o.keys.Value()); err != nil {
		return with, nil, err
	}
	for flag, value := range map[string]string{"type": o.kind, "identity": o.identity} {
		if p.Given(flag) && value == "" {
			return with, nil, cmdline.Usagef("--%s is empty", flag)
		}
	}
	if text := o.kind; text != "" {
		if with.Type, err = signature.ParsePredicateType(text); err != nil {
			return with, nil, cmdline.Usagef("--type: %w", err)
		}
	}
	if text := o.identity; text != "" {
		if with.Identity, err = signature.ParseIdentity(text); err != nil {
			return with, nil, cmdline.Usagef("--identity: %w", err)
		}
	}
	return with, files, nil
}

// printVerified prints who signed what, and what was refused.
func printVerified(p *option.Session, r *signature.Report, files map[string]string, o signature.VerifyOptions) error {
	var b strings.Builder
	// A line break in a text from outside would look like another line of the answer.
	line := func(format string, args ...any) {
		fmt.Fprintln(&b, printable.Cell(fmt.Sprintf(format, args...)))
	}
	for _, s := range r.Subjects {
		about := string(s.Digest)
		if s.Platform != "" {
			about += " (" + s.Platform + ")"
		}
		if len(s.Findings) == 0 {
			line("none: %s", about)
		}
		for _, f := range s.Findings {
			if !f.Verified {
				verdict := "refused"
				if f.Class == signature.NotASignature || f.Class == signature.OtherPredicate {
					verdict = "other" // good, and not what was asked for
				}
				line("%s: %s: %s in %s: %s: %s", verdict, about, f.Form, program.ShortDigest(cmp.Or(f.Layer, f.Manifest)), f.Class,
					f.Problem)
				continue
			}
			by := signedBy(f.CertificateIdentity, files[f.Key]+" ("+f.KeyType+")")
			text := fmt.Sprintf("good: %s: %s by %s", about, f.Form, by)
			if f.Identity != "" {
				text += " for " + f.Identity
			}
			if f.PredicateType != "" && f.PredicateType != signature.PredicateSign {
				text += " of type " + f.PredicateType
			}
			line("%s", text)
		}
	}
	what := "signed"
	if r.Type != signature.PredicateSign {
		what = "attested"
	}
	switch {
	case !r.Verified:
		line("not %s: %s", what, r.Image)
	case r.By == signature.ByInstances:
		line("%s: %s, by each of its images", what, r.Image)
	default:
		line("%s: %s", what, r.Image)
	}
	for _, f := range r.Refusals() {
		if f.Class == signature.OtherIdentity && !r.Verified {
			p.Log.Info("signatures for another name: --identity REPOSITORY accepts every tag of a repository")
			break
		}
	}
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}

// attached is an image and the place where it is, for what is attached to it.
type attached struct {
	store.Reader
	image      store.Image
	inRegistry bool
	close      func() error
}

// Close closes the place.
func (a *attached) Close() error { return a.close() }

// openAttached opens an image for what is attached to it, without asking the policy.
func openAttached(ctx context.Context, client *images.Client, name string) (*attached, error) {
	if err := checkAttached(client, name); err != nil {
		return nil, err
	}
	at, err := client.OpenUnverified(ctx, name)
	if err != nil {
		return nil, err
	}
	image, err := at.Entries(ctx)
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return &attached{at.Attached(image), image, at.InRegistry(), at.Close}, nil
}

// openAccepted opens an image that the policy accepts for what is attached to it.
func openAccepted(ctx context.Context, client *images.Client, name string) (*attached, error) {
	if err := checkAttached(client, name); err != nil {
		return nil, err
	}
	at, err := client.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	image, err := at.Entries(ctx)
	if err != nil {
		return nil, errors.Join(err, at.Close())
	}
	return &attached{at, image, at.InRegistry(), at.Close}, nil
}

// checkAttached refuses names of images that have nothing attached to them.
func checkAttached(client *images.Client, name string) error {
	asked, err := client.Transports().Source(name)
	if err == nil {
		err = client.Transports().CheckAttached(asked)
	}
	if err != nil {
		return &images.PullError{Name: redact.Text(name), Err: redact.Error(err)}
	}
	return nil
}

// PolicyVerdict is the answer of "verify --signatures".
type PolicyVerdict struct {
	Image    string `json:"image"`
	Verified bool   `json:"verified"`
	Class    string `json:"class,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

// verifyByPolicy judges an image by the policy. An image that the policy accepts without a signature is not verified.
func verifyByPolicy(ctx context.Context, p *option.Session, o *inspectOptions, name string, format program.Format) error {
	for _, flag := range []string{"type", "identity"} {
		if p.Given(flag) {
			return cmdline.Usagef("--%s needs --key or --certificate-identity: the policy decides on identities, and on signatures alone", flag)
		}
	}
	p.RequireSigned = true // what the policy accepts without a signature is not signed
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	at, err := client.Open(ctx, name)
	verdict := PolicyVerdict{Image: name, Verified: err == nil}
	var policy *images.PolicyError
	switch {
	case err == nil:
		verdict.Image = at.Digest.String()
		if err := at.Close(); err != nil {
			return err
		}
	case errors.As(err, &policy):
		verdict.Class, verdict.Problem = "policy", err.Error()
	default:
		return err
	}
	if format.IsDocument() {
		err = p.PrintValue(format, verdict)
	} else if verdict.Verified {
		_, err = fmt.Fprintf(p.Stdout, "signed: %s\n", verdict.Image)
	} else {
		err = hint.Add(p.Program, err)
		var hinted *cmdline.Error
		if errors.As(err, &hinted) && hinted.Hint != "" {
			p.Log.Info(p.Words(hinted.Hint))
		}
		_, err = fmt.Fprintf(p.Stdout, "not signed: %s\n", printable.Cell(verdict.Problem))
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if !verdict.Verified {
		return &cmdline.ExitStatus{Status: 1}
	}
	return p.SaveLock()
}
