package option

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/guard"
)

// Keys are the private keys to sign with.
type Keys struct {
	Files          cli.StringSlice
	PassphraseFile string
	AllowPlainKey  bool
	Keyless
}

// Flags are the flags of every command that signs.
func (o *Keys) Flags(name, group string) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: name, Category: group, EnvVars: program.Env("sign-key"), Destination: &o.Files,
			Usage: "sign with the private key in `FILE` (PEM), in " + secret.InVariable + ", or on standard input (-); can be " +
				"repeated"},
		o.PassphraseFlag(group),
		&cli.BoolFlag{Name: "allow-plain-key", Category: group, EnvVars: program.Env("allow-plain-key"),
			Usage: "accept a key that is not encrypted (PKCS#8)", Destination: &o.AllowPlainKey},
	}, o.Keyless.Flags()...)
}

// PassphraseFlag says where the passphrase of the keys is.
func (o *Keys) PassphraseFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "sign-passphrase-file", Category: group, EnvVars: program.Env("sign-passphrase-file"),
		Destination: &o.PassphraseFile, Usage: "read the passphrase of all keys from `FILE` or from the descriptor fd:N " +
			"(default $" + secret.PassphraseVariable + ")"}
}

// Open opens the private keys of a flag, or finds the services that sign by an identity. Opening an encrypted key takes a
// part of a second and 64 MiB, so it begins at once and goes on beside the command.
func (o *Keys) Open(ctx context.Context, p *Session, flag string) (signature.Keys, error) {
	names, err := cmdline.List(o.Files.Value())
	switch {
	case err != nil:
		return nil, err
	case o.SignKeyless && len(names) > 0:
		e := cmdline.Usagef("--%s cannot be combined with --sign-keyless: an image is signed in one way, and by a second "+
			"command in the other", flag)
		e.Hint = "the variables BINDERY_SIGN_KEY and BINDERY_SIGN_KEYLESS stand for the flags"
		return nil, e
	case o.SignKeyless:
		return o.Keyless.open(ctx, p)
	}
	if err := p.refuse("has no effect without --sign-keyless", keylessFlags...); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		if p.GivenHere(flag) {
			return nil, cmdline.Usagef("--%s names no key", flag) // else the image would not be signed
		}
		return nil, nil
	}
	ForbidCoreDumps()
	texts := make([][]byte, len(names))
	sealed := false
	for n, name := range names {
		if texts[n], err = p.keyText(ctx, name); err != nil {
			return nil, ofFile(flag, name, err)
		}
		sealed = sealed || signature.IsEncrypted(texts[n])
	}
	var passphrase []byte
	if sealed {
		if passphrase, err = o.Passphrase(ctx, p, false); err != nil {
			return nil, err
		}
	}
	plain := o.AllowPlainKey
	open := sync.OnceValues(func() (keys []signature.Signer, err error) {
		defer guard.Recover(&err)
		defer clear(passphrase)
		for n, text := range texts {
			key, err := signature.ParseKey(text, passphrase, plain)
			clear(text)
			if err != nil {
				return nil, keyError(flag, names[n], err)
			}
			if !key.Public().TakenByAll() {
				p.WarnOnce(fmt.Sprintf("the key %s is %s: not every verifier takes its signatures, ECDSA P-256 is "+
					"taken by all", names[n], key.Public().Describe()))
			}
			keys = append(keys, key)
		}
		return keys, nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = open() // the error is returned to those who wait
	}()
	return func(ctx context.Context) ([]signature.Signer, error) {
		select {
		case <-done:
			return open()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}, nil
}

// keyError adds the name of a key and advice to its error.
func keyError(flag, name string, err error) error {
	e := &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: fmt.Errorf("--%s %s: %w", flag, name, err)}
	switch {
	case errors.Is(err, signature.ErrPassphrase):
		e.Hint = "give the passphrase with --sign-passphrase-file FILE or $" + secret.PassphraseVariable
	case errors.Is(err, signature.ErrPlainKey):
		e.Hint = "--allow-plain-key accepts it; \"bindery keys generate\" makes an encrypted one"
	}
	return e
}

// keyText reads the text of a key.
func (p *Session) keyText(ctx context.Context, name string) ([]byte, error) {
	if name == "-" {
		return secret.ReadAtMost(p.Stdin, secret.MaxSize)
	}
	if variable, ok := secret.Variable(name); ok {
		text, set := p.Secrets.Lookup(variable)
		if !set {
			return nil, cmdline.Usagef("the environment variable %s is not set", variable)
		}
		return []byte(text), nil
	}
	return secret.ReadFile(ctx, name)
}

// Passphrase reads the passphrase of the keys: from the file or descriptor of the flag, else from the environment, else
// from the terminal, twice if it is for a new key.
func (o *Keys) Passphrase(ctx context.Context, p *Session, twice bool) ([]byte, error) {
	if name := o.PassphraseFile; name != "" {
		text, err := secret.Read(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("--sign-passphrase-file %s: %w", name, err)
		}
		return secret.WithoutLineEnd(text), nil
	}
	if text, set := p.Secrets.Lookup(secret.PassphraseVariable); set {
		return []byte(text), nil
	}
	in := p.Terminal()
	if in == nil {
		e := cmdline.Usagef("the key needs a passphrase")
		e.Hint = "give it with --sign-passphrase-file FILE or $" + secret.PassphraseVariable
		return nil, e
	}
	return p.askPassphrase(in, twice)
}

// Terminal returns standard input if it is a terminal, else nil.
func (p *Session) Terminal() *os.File {
	if in, ok := p.Stdin.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		return in
	}
	return nil
}

// AskSecret asks for a line on a terminal, which does not show it.
func (p *Session) AskSecret(in *os.File, prompt string) ([]byte, error) {
	fmt.Fprint(p.Stderr, prompt)
	text, err := term.ReadPassword(int(in.Fd()))
	fmt.Fprintln(p.Stderr)
	return text, err
}

// askPassphrase asks on the terminal.
func (p *Session) askPassphrase(in *os.File, twice bool) ([]byte, error) {
	first, err := p.AskSecret(in, "Passphrase of the key: ")
	if err != nil || !twice {
		return first, err
	}
	again, err := p.AskSecret(in, "The same passphrase again: ")
	defer clear(again)
	if err != nil {
		return nil, err
	}
	if string(first) != string(again) {
		clear(first)
		return nil, cmdline.Usagef("the passphrases differ")
	}
	return first, nil
}
