package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// trustedKeys reads the files of --trusted-key. A flag without a file, such as one whose value is a variable that is
// not set, is an error: without keys every image would be accepted.
func trustedKeys(c *cli.Context) ([]signature.PublicKey, error) {
	files, err := cmdline.List(c.StringSlice("trusted-key"))
	if err != nil {
		return nil, err
	}
	if c.IsSet("trusted-key") && len(files) == 0 {
		return nil, cmdline.Usagef("--trusted-key names no key")
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

// policyFlag reads --policy. An empty value on the command line, such as that of a variable that is not set, is an
// error: the system's policy in its place may accept every image.
func policyFlag(c *cli.Context) (string, error) {
	file := c.String("policy")
	if _, inEnvironment := os.LookupEnv(env("policy")[0]); file == "" && c.IsSet("policy") && !inEnvironment {
		return "", cmdline.Usagef("--policy names no file")
	}
	return file, nil
}
