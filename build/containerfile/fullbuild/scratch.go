//go:build linux && cgo && buildah && exclude_graphdriver_btrfs

package fullbuild

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/types"
)

// scratch makes the library write its temporary files to the directory of the build, by setting environment variables.
// restore resets the variables.
func (r Request) scratch() (restore func() error, err error) {
	var undo []func() error
	restore = func() error {
		var errs []error
		for _, f := range undo {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	set := func(name, dir string) error {
		path := filepath.Join(r.Dir, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		old, was := os.LookupEnv(name)
		undo = append(undo, func() error {
			if !was {
				return os.Unsetenv(name)
			}
			return os.Setenv(name, old)
		})
		return os.Setenv(name, path)
	}
	err = set("TMPDIR", "tmp")
	if err == nil && os.Getenv("XDG_RUNTIME_DIR") == "" {
		err = set("XDG_RUNTIME_DIR", "run")
	}
	if err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// credentials sets the path of the credentials file, which changing XDG_RUNTIME_DIR in [Request.scratch] would hide:
// the default is in a directory named after the user's real id.
func credentials(sys *types.SystemContext, uid int) {
	if sys.AuthFilePath != "" || os.Getenv("XDG_RUNTIME_DIR") != "" {
		return
	}
	file := fmt.Sprintf("/run/containers/%d/auth.json", uid)
	if _, err := os.Stat(file); err == nil {
		sys.AuthFilePath = file
	}
}
