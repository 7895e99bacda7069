package option

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/identity"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/signature/keyless"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Keyless is how images are signed by an identity.
type Keyless struct {
	SignKeyless                                    bool
	Token, SigningConfig, FulcioURL, RekorURL, TSA string
	RekorVersion                                   int
	Issuer, ClientID                               string

	found keyless.Services // after open
}

// keylessFlags are the flags that have a meaning with --sign-keyless only.
var keylessFlags = []string{"identity-token", "signing-config", "fulcio-url", "rekor-url", "rekor-version", "tsa-url",
	"oidc-issuer", "oidc-client-id"}

// Flags are the flags of every command that signs.
func (o *Keyless) Flags() []cli.Flag {
	const group = "keyless signing"
	text := textFlags(group)
	return []cli.Flag{
		&cli.BoolFlag{Name: "sign-keyless", Category: "signing", EnvVars: program.Env("sign-keyless"),
			Destination: &o.SignKeyless, Usage: "sign by the identity of an OpenID Connect token, with Sigstore's services"},
		text("identity-token", "read the token from `FILE`, env://VARIABLE or fd:N (default $SIGSTORE_ID_TOKEN, the one of "+
			"the CI system or the pod, or by a code on the terminal)", &o.Token),
		text("signing-config", "`FILE` with the services (signing_config.v0.2.json; default those of Sigstore's public "+
			"instance)", &o.SigningConfig),
		text("fulcio-url", "`URL` of the certificate authority of a private instance", &o.FulcioURL),
		text("rekor-url", "`URL` of the transparency log of a private instance", &o.RekorURL),
		&cli.IntFlag{Name: "rekor-version", Category: group, EnvVars: program.Env("rekor-version"), Value: 1,
			Destination: &o.RekorVersion, Usage: "`VERSION` of the API of --rekor-url (1|2)"},
		text("tsa-url", "`URL` with the path of the timestamp authority of a private instance", &o.TSA),
		text("oidc-issuer", "`URL` of the issuer that gives a token for a code on the terminal", &o.Issuer),
		text("oidc-client-id", "`ID` of this program at the issuer (default sigstore)", &o.ClientID),
	}
}

// open finds the services and where the token comes from, before any work. The token is used for the first signature.
func (o *Keyless) open(ctx context.Context, p *Session) (signature.Keys, error) {
	err := p.refuse("cannot be combined with --sign-keyless", "sign-passphrase-file", "allow-plain-key",
		"legacy-attestations")
	if err != nil {
		return nil, err
	}
	if o.Token == "" && p.GivenHere("identity-token") {
		return nil, cmdline.Usagef("--identity-token is empty") // the job's own token in its place would be another identity
	}
	ForbidCoreDumps()
	if o.found, err = o.services(ctx); err != nil {
		return nil, err
	}
	source, err := identity.Options{Token: o.Token, Issuer: cmp.Or(o.Issuer, o.found.Issuer), ClientID: o.ClientID,
		Secrets: p.Secrets, Terminal: p.Terminal() != nil, Tell: func(line string) { fmt.Fprintln(p.Stderr, line) }}.Find(ctx)
	if err != nil {
		return nil, err
	}
	root, err := o.publicRoot(ctx)
	if err != nil {
		return nil, err
	}
	signer, err := keyless.NewSigner(o.found, source.Token, root)
	if err != nil { // only of services that flags name, as a configuration is checked when it is read
		e := cmdline.Usagef("%w", err)
		e.Hint = "name the services with --fulcio-url, --rekor-url (--rekor-version 2) and --tsa-url"
		return nil, e
	}
	p.Log.Debug("signing by an identity", "token", source.Name, "authority", o.found.Authority)
	return func(context.Context) ([]signature.Signer, error) { return []signature.Signer{signer}, nil }, nil
}

// publicRoot returns the trusted root of the public instance, if that signs: what it signs is verified before it is
// published. Of another instance the root is not known here.
func (o *Keyless) publicRoot(ctx context.Context) (*keyless.Root, error) {
	if o.FulcioURL != "" || o.SigningConfig != "" {
		return nil, nil
	}
	text, err := (&TrustedRoot{}).read(ctx)
	if err != nil {
		return nil, err
	}
	return keyless.ParseRoot(text)
}

// services returns the services of the flags: of a private instance, of a signing configuration, or the public ones.
func (o *Keyless) services(ctx context.Context) (s keyless.Services, err error) {
	private := o.FulcioURL != "" || o.RekorURL != "" || o.TSA != ""
	switch {
	case private && o.SigningConfig != "":
		return s, cmdline.Usagef("--signing-config names the services: --fulcio-url, --rekor-url and " +
			"--tsa-url cannot be combined with it")
	case o.RekorVersion != 1 && o.RekorURL == "":
		return s, cmdline.Usagef("--rekor-version %d is of --rekor-url, which is missing", o.RekorVersion)
	case private && o.FulcioURL == "":
		return s, cmdline.Usagef("--fulcio-url is missing: a private instance needs a certificate authority")
	case private:
		s.Authority = o.FulcioURL
		if o.TSA != "" {
			s.Timestamps = []string{o.TSA}
		}
		if o.RekorURL != "" {
			s.Logs = []keyless.Log{{URL: o.RekorURL, Version: uint32(max(o.RekorVersion, 0))}}
			if o.RekorVersion == 1 {
				s.SignedTimeLog = o.RekorURL
			}
		}
		return s, nil
	case o.SigningConfig != "":
		text, err := regularfile.ReadNamed(ctx, o.SigningConfig, maxSigningConfig)
		if err == nil {
			s, err = keyless.ParseServices(text)
		}
		return s, ofFile("signing-config", o.SigningConfig, err)
	}
	if s, err = publicInstance(false).Services(ctx); err != nil {
		return s, &cmdline.Error{Class: cmdline.Classify(err), Err: fmt.Errorf("the services to sign with: %w", err),
			Hint: "name them with --signing-config FILE, or those of a private instance with --fulcio-url"}
	}
	return s, nil
}

// Certificates is whose certificates are looked for.
type Certificates struct {
	keyless.Identity
}

// identityFlags are the flags that name an identity.
var identityFlags = []string{"certificate-identity", "certificate-identity-regexp", "certificate-oidc-issuer",
	"certificate-oidc-issuer-regexp"}

// Flags are the flags of commands that show whose signatures an image has.
func (o *Certificates) Flags() []cli.Flag {
	text := textFlags("signatures")
	return []cli.Flag{
		text(identityFlags[0], "verify signatures whose certificate is of `ID`: an e-mail address, or the URI of a workflow "+
			"or an account", &o.Name),
		text(identityFlags[1], "like --certificate-identity, with a regular `EXPRESSION`; it matches a part unless it is ^...$",
			&o.NameRegexp),
		text(identityFlags[2], "`URL` of the OpenID Connect issuer that vouches for the identity", &o.Issuer),
		text(identityFlags[3], "like --certificate-oidc-issuer, with a regular `EXPRESSION`", &o.IssuerRegexp),
	}
}

// Given tells whether a flag names an identity.
func (o *Certificates) Given(p *Session) bool {
	return slices.ContainsFunc(identityFlags, p.Given)
}

// Verifier returns what verifies signatures by the identity; nil if none is given.
func (o *Certificates) Verifier(ctx context.Context, p *Session, root *TrustedRoot) (signature.Identities, error) {
	named := o.Name != "" || o.NameRegexp != ""
	vouched := o.Issuer != "" || o.IssuerRegexp != ""
	switch {
	case !o.Given(p):
		return nil, nil
	case !named && !vouched:
		return nil, cmdline.Usagef("--certificate-identity is empty")
	case !vouched:
		e := cmdline.Usagef("an identity counts only with the issuer that vouches for it: --certificate-oidc-issuer is missing")
		e.Hint = "for a workflow of GitHub Actions it is https://token.actions.githubusercontent.com"
		return nil, e
	case !named:
		return nil, cmdline.Usagef("an issuer vouches for many identities: --certificate-identity is missing")
	case o.Name != "" && o.NameRegexp != "":
		return nil, cmdline.Usagef("--certificate-identity and --certificate-identity-regexp cannot be combined")
	case o.Issuer != "" && o.IssuerRegexp != "":
		return nil, cmdline.Usagef("--certificate-oidc-issuer and --certificate-oidc-issuer-regexp cannot be combined")
	}
	for flag, pattern := range map[string]string{identityFlags[1]: o.NameRegexp, identityFlags[3]: o.IssuerRegexp} {
		if _, err := regexp.Compile(pattern); err != nil {
			return nil, cmdline.Usagef("--%s: %w", flag, err)
		}
	}
	return root.verifier(ctx, "certificate-identity", o.Identity)
}

// TrustedRoot is what is trusted of Sigstore.
type TrustedRoot struct {
	File    string
	Offline bool
	// Text is that of the root, if File is its digest.
	Text []byte
}

// RootFlags name the trusted root.
func (o *TrustedRoot) RootFlags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "trusted-root", Category: group, EnvVars: program.Env("trusted-root"), Destination: &o.File,
			Usage: "`FILE` with the authorities and logs behind identities (trusted_root.json; default that of Sigstore's " +
				"public instance)"},
		&cli.BoolFlag{Name: "offline", Category: group, EnvVars: program.Env("offline"), Destination: &o.Offline,
			Usage: "do not ask for the trusted root of Sigstore's public instance: it is in the cache, or in --trusted-root"},
	}
}

// verifier returns what verifies signatures by some identities of a flag.
func (o *TrustedRoot) verifier(ctx context.Context, flag string, of ...keyless.Identity) (*keyless.Verifier, error) {
	text, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	root, err := keyless.ParseRoot(text)
	if err != nil {
		return nil, ofFile("trusted-root", o.File, err)
	}
	v, err := keyless.NewVerifier(root, of...)
	if err != nil {
		return nil, cmdline.Usagef("--%s: %w", flag, err)
	}
	return v, nil
}

// Read returns the text of the trusted root. Another text is an error.
func (o *TrustedRoot) Read(ctx context.Context) ([]byte, error) {
	text, err := o.read(ctx)
	if err == nil {
		_, err = keyless.ParseRoot(text)
		err = ofFile("trusted-root", o.File, err)
	}
	return text, err
}

func (o *TrustedRoot) read(ctx context.Context) ([]byte, error) {
	switch {
	case o.Text != nil:
		return o.Text, nil
	case strings.HasPrefix(o.File, "sha256:"):
		e := cmdline.Usagef("--trusted-root %s is not a file", o.File)
		e.Hint = "a digest is that of the root in an archive, which \"mirror run --from DIR\" and \"mirror verify file://DIR\" read"
		return nil, e
	case o.File != "":
		text, err := regularfile.ReadNamed(ctx, o.File, maxSigningConfig)
		return text, ofFile("trusted-root", o.File, err)
	}
	text, err := publicInstance(o.Offline).TrustedRoot(ctx)
	if err == nil {
		return text, nil
	}
	e := &cmdline.Error{Class: cmdline.Classify(err), Err: fmt.Errorf("the trusted root: %w", err),
		Hint: "give it with --trusted-root FILE"}
	if errors.Is(err, keyless.ErrNotCached) {
		e.Hint += ", or let the command fetch it once without --offline"
	}
	return nil, e
}

// identitiesFlag names identities that are trusted when images are read.
func (o *Registry) identitiesFlag(group string) cli.Flag {
	return &cli.StringSliceFlag{Name: "trusted-identity", Category: group, EnvVars: program.Env("trusted-identity"),
		Destination: &o.TrustedIdentities, Usage: "refuse every image that `ISSUER=ID` has not signed, in place of what the " +
			"policy requires; can be repeated, and stand beside --trusted-key"}
}

// identities returns what verifies signatures by --trusted-identity; nil without the flag.
func (o *Registry) identities(ctx context.Context, p *Session) (signature.Identities, error) {
	values, err := cmdline.List(o.TrustedIdentities.Value())
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		if p.Given("trusted-identity") { // such as a variable that is not set: every image would be accepted
			return nil, cmdline.Usagef("--trusted-identity names no identity")
		}
		if slices.ContainsFunc(append(identityFlags, "include-trusted-root"), p.Given) {
			return nil, nil
		}
		return nil, p.refuse("has no effect without an identity, such as --trusted-identity", "trusted-root", "offline")
	}
	var of []keyless.Identity
	for _, value := range values {
		issuer, name, ok := strings.Cut(value, "=")
		if !ok || issuer == "" || name == "" {
			return nil, cmdline.Usagef("invalid --trusted-identity value %q, expected ISSUER=ID, such as "+
				"https://token.actions.githubusercontent.com=https://github.com/acme/catalog/.github/workflows/release.yml@refs/heads/main",
				value)
		}
		of = append(of, keyless.Identity{Issuer: issuer, Name: name})
	}
	return o.TrustedRoot.verifier(ctx, "trusted-identity", of...)
}

// maxSigningConfig is the largest signing configuration or trusted root in bytes.
const maxSigningConfig = 4 << 20

// publicInstance is the public instance of Sigstore, whose files are kept in the user's cache.
func publicInstance(offline bool) keyless.Public {
	in := keyless.Public{Offline: offline}
	if blobs, ok := CacheDir(); ok {
		in.Cache = filepath.Join(filepath.Dir(blobs), "tuf")
	}
	return in
}

// ofFile adds the file of a flag to an error; nil stays nil, and an error without a file as it is.
func ofFile(flag, file string, err error) error {
	if err == nil || file == "" {
		return err
	}
	return &cmdline.Error{Class: cmdline.Classify(err), Object: file, Err: fmt.Errorf("--%s %s: %w", flag, file, err)}
}

// textFlags makes flags of a category that take a text.
func textFlags(group string) func(name, usage string, to *string) cli.Flag {
	return func(name, usage string, to *string) cli.Flag {
		return &cli.StringFlag{Name: name, Category: group, EnvVars: program.Env(name), Usage: usage, Destination: to}
	}
}

// refuse returns an error that says of the first of some flags on the command line why it cannot be there; nil if none is.
func (p *Session) refuse(why string, flags ...string) error {
	if at := slices.IndexFunc(flags, p.GivenHere); at >= 0 {
		return cmdline.Usagef("--%s %s", flags[at], why)
	}
	return nil
}
