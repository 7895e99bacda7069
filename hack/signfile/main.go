// Command signfile signs a file with a key of "bindery keys generate": the output is the signature in base64, as
// "cosign verify-blob" and, decoded, "openssl dgst -sha256 -verify" take it. The passphrase is in BINDERY_SIGN_PASSPHRASE;
// without it the key must be in clear.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/atomicfs"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: signfile KEY-FILE FILE SIGNATURE-FILE")
	}
	pem, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	passphrase, encrypted := os.LookupEnv("BINDERY_SIGN_PASSPHRASE")
	key, err := signature.ParseKey(pem, []byte(passphrase), !encrypted)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	signed, err := key.Sign(context.Background(), text)
	if err != nil {
		return err
	}
	return atomicfs.WriteFile(args[2], []byte(base64.StdEncoding.EncodeToString(signed)+"\n"), 0o644)
}
