package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// trustedKeys reads the files of --trusted-key.
func trustedKeys(c *cli.Context) ([]signature.PublicKey, error) {
	files, err := cmdline.List(c.StringSlice("trusted-key"))
	if err != nil {
		return nil, err
	}
	var keys []signature.PublicKey
	for _, file := range files {
		text, err := regularfile.ReadMounted(file)
		if err != nil {
			return nil, fmt.Errorf("--trusted-key: %w", err)
		}
		of, err := signature.ParsePublicKeys(text)
		if err != nil {
			return nil, fmt.Errorf("--trusted-key %s: %w", file, err)
		}
		keys = append(keys, of...)
	}
	return keys, nil
}
