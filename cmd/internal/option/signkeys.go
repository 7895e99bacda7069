package option

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// PassphraseVariable is the environment variable with the passphrase of encrypted keys.
const PassphraseVariable = "BINDERY_SIGN_PASSPHRASE"

// Keys are the private keys to sign with.
type Keys struct {
	Files          cli.StringSlice
	PassphraseFile string
	AllowPlainKey  bool
}

// Flags are the flags of every command that signs.
func (o *Keys) Flags(name, group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: name, Category: group, EnvVars: program.Env("sign-key"), Destination: &o.Files,
			Usage: "sign with the private key in `FILE` (PEM), in env://VARIABLE, or on standard input (-); can be " +
				"repeated"},
		o.PassphraseFlag(group),
		&cli.BoolFlag{Name: "allow-plain-key", Category: group, EnvVars: program.Env("allow-plain-key"),
			Usage: "accept a key that is not encrypted (PKCS#8)", Destination: &o.AllowPlainKey},
	}
}

// PassphraseFlag says where the passphrase of the keys is.
func (o *Keys) PassphraseFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "sign-passphrase-file", Category: group, EnvVars: program.Env("sign-passphrase-file"),
		Destination: &o.PassphraseFile, Usage: "read the passphrase of all keys from `FILE` or from the descriptor fd:N " +
			"(default $" + PassphraseVariable + ")"}
}

// maxKeyFile is the largest file with a key or a passphrase in bytes.
const maxKeyFile = 64 << 10

// Open opens the private keys of a flag. Opening an encrypted key takes a part of a second and 64 MiB, so it
// begins at once and goes on beside the command.
func (o *Keys) Open(ctx context.Context, p *Session, flag string) (signature.Keys, error) {
	names, err := cmdline.List(o.Files.Value())
	if err != nil {
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
			return nil, &cmdline.Error{Class: cmdline.Classify(err), Object: name,
				Err: fmt.Errorf("--%s %s: %w", flag, name, err)}
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
	open := sync.OnceValues(func() ([]signature.Signer, error) {
		defer clear(passphrase)
		var keys []signature.Signer
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
		e.Hint = "give the passphrase with --sign-passphrase-file FILE or $" + PassphraseVariable
	case errors.Is(err, signature.ErrPlainKey):
		e.Hint = "--allow-plain-key accepts it; \"bindery keys generate\" makes an encrypted one"
	}
	return e
}

// keyText reads the text of a key.
func (p *Session) keyText(ctx context.Context, name string) ([]byte, error) {
	if name == "-" {
		return ReadAtMost(p.Stdin, maxKeyFile)
	}
	if variable, ok := strings.CutPrefix(name, "env://"); ok {
		text, set := os.LookupEnv(variable)
		if !set {
			return nil, cmdline.Usagef("the environment variable %s is not set", variable)
		}
		return []byte(text), nil
	}
	return readSecret(ctx, name)
}

// Passphrase reads the passphrase of the keys: from the file or descriptor of the flag, else from the environment, else
// from the terminal, twice if it is for a new key.
func (o *Keys) Passphrase(ctx context.Context, p *Session, twice bool) ([]byte, error) {
	if name := o.PassphraseFile; name != "" {
		text, err := passphraseFile(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("--sign-passphrase-file %s: %w", name, err)
		}
		return text, nil
	}
	if text, set := os.LookupEnv(PassphraseVariable); set {
		// Processes that the containers libraries start, such as credential helpers, do not inherit it.
		if err := os.Unsetenv(PassphraseVariable); err != nil {
			return nil, err
		}
		return []byte(text), nil
	}
	in := p.Terminal()
	if in == nil {
		e := cmdline.Usagef("the key needs a passphrase")
		e.Hint = "give it with --sign-passphrase-file FILE or $" + PassphraseVariable
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

// passphraseFile reads a passphrase from a file or a descriptor. A line end after it does not belong to it.
func passphraseFile(ctx context.Context, name string) (text []byte, err error) {
	number, isDescriptor := strings.CutPrefix(name, "fd:")
	switch {
	case isDescriptor:
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return nil, cmdline.Usagef("invalid descriptor %q, expected fd:N", name)
		}
		f, err := openDescriptor(n, name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if text, err = ReadAtMost(f, maxKeyFile); err != nil {
			return nil, err
		}
	default:
		if text, err = readSecret(ctx, name); err != nil {
			return nil, err
		}
	}
	if end := len(text) - 1; end >= 0 && text[end] == '\n' {
		text = text[:end]
	}
	if end := len(text) - 1; end >= 0 && text[end] == '\r' {
		text = text[:end]
	}
	return text, nil
}

// readSecret reads a file that no copy is kept of.
func readSecret(ctx context.Context, name string) ([]byte, error) {
	f, err := regularfile.OpenNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAtMost(f, maxKeyFile)
}

func ReadAtMost(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("longer than %d bytes", most)
	}
	return text, err
}
