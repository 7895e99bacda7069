package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/cliutil"
)

// checkApart refuses an output that is the input or lies in it: it would replace the input, or be read as a part of the
// catalog the next time.
func checkApart(in, out string) error {
	from, err := resolve(in)
	if err != nil {
		return nil // an input that does not exist, or an image, is not in the way; reading it tells what is wrong
	}
	to, err := resolve(out)
	if err != nil {
		return nil
	}
	if to != from && !strings.HasPrefix(to, strings.TrimSuffix(from, string(filepath.Separator))+string(filepath.Separator)) {
		return nil
	}
	e := cliutil.Usagef("the output %q is the input %q or lies in it", out, in)
	e.Object, e.Hint = out, "name a place outside of the input"
	return e
}

// checkDestinations is [checkApart] for the places of an image.
func checkDestinations(in string, dests []images.Destination) error {
	for _, d := range dests {
		if d.Transport == images.Docker {
			continue
		}
		if err := checkApart(in, d.Path); err != nil {
			return err
		}
	}
	return nil
}

// resolve is the absolute path without links. Elements at the end need not exist.
func resolve(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) || filepath.Dir(path) == path {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

// checkResult refuses a file of --report and the like that cannot be written, before the work is done.
func checkResult(flag, path string) error {
	if path == "" {
		return nil
	}
	if path == "-" {
		return cliutil.Usagef("--%s %q: the name of a file is needed", flag, path)
	}
	if err := atomicfs.CheckFile(path); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}
