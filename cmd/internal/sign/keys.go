package sign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/printable"
)

func KeysCommand(p *option.Session) *cli.Command {
	return p.GroupCommand("keys", "make keys to sign images with", keysGenerateCommand(p))
}

// keyOptions are the flags of "keys generate".
type keyOptions struct {
	option.Keys
	name, algorithm string
}

func keysGenerateCommand(p *option.Session) *cli.Command {
	var kinds []string
	for _, a := range signature.Algorithms() {
		kinds = append(kinds, string(a))
	}
	o := &keyOptions{}
	return &cli.Command{
		Name:  "generate",
		Usage: "make a key pair to sign images with",
		Description: `Writes NAME.key, the private key, encrypted with a passphrase as cosign does it, and
NAME.pub, the public key. Neither may exist. The passphrase is read from --sign-passphrase-file, from $` + secret.PassphraseVariable +
			` or from the terminal. Every verifier takes ECDSA P-256, the default; signatures of other keys
are not taken by all.` +
			program.Examples("bindery keys generate --sign-passphrase-file passphrase.txt",
				"bindery keys generate --name release --algorithm ed25519 --sign-passphrase-file passphrase.txt"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Value: "bindery", Usage: "write `NAME`.key and NAME.pub", Destination: &o.name},
			&cli.StringFlag{Name: "algorithm", Value: kinds[0], Destination: &o.algorithm,
				Usage: "`ALGORITHM` of the key (" + strings.Join(kinds, "|") + ")"},
			&cli.StringFlag{Name: "sign-passphrase-file", EnvVars: program.Env("sign-passphrase-file"),
				Destination: &o.PassphraseFile, Usage: "read the passphrase from `FILE` or from the descriptor fd:N (default $" + secret.PassphraseVariable +
					", else the terminal)"},
		},
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return generateKeys(ctx, p, o) })),
	}
}

func generateKeys(ctx context.Context, p *option.Session, o *keyOptions) error {
	algorithm, known := signature.Algorithm(o.algorithm), false
	for _, a := range signature.Algorithms() {
		known = known || a == algorithm
	}
	if !known {
		return cmdline.Usagef("invalid --algorithm value %q, expected one of %v", algorithm, signature.Algorithms())
	}
	name := o.name
	if last := name[strings.LastIndexAny(name, `/\`)+1:]; strings.Trim(last, ".") == "" || !printable.NoControl(name) {
		return cmdline.Usagef("invalid --name value %q, expected a name such as release, or DIR/release", name)
	}
	private, public := name+".key", name+".pub"
	for _, path := range []string{private, public} { // before the passphrase is asked for
		if _, err := os.Lstat(path); err == nil {
			return keyExists(path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	option.ForbidCoreDumps()
	passphrase, err := o.Passphrase(ctx, p, true)
	if err != nil {
		return err
	}
	defer clear(passphrase)
	if len(passphrase) == 0 {
		p.Log.Warn("the passphrase is empty: anyone who has the file can sign")
	}
	key, pub, err := algorithm.GenerateKey(passphrase)
	if err != nil {
		return err
	}
	// The private key takes the name first, so that of several runs at once one has both files.
	err = atomicfs.WriteFiles(ctx, []atomicfs.Content{{Path: private, Data: key, Perm: 0o600, New: true},
		{Path: public, Data: pub, Perm: 0o644, New: true}})
	var taken *fs.PathError
	if errors.Is(err, fs.ErrExist) && errors.As(err, &taken) {
		return keyExists(taken.Path)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "%s\n%s\n", private, public)
	return err
}

func keyExists(path string) error {
	return &cmdline.Error{Class: cmdline.ClassLocal, Object: path, Hint: "choose another name with --name",
		Err: fmt.Errorf("%s exists: a key is never overwritten", path)}
}
