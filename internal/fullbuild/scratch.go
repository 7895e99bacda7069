//go:build linux && cgo && buildah

package fullbuild

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.podman.io/image/v5/types"
)

// scratch makes the directory of the build the place of all that the library writes on the way: it looks for that in the
// environment. The function that is returned puts the environment back.
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

// credentials makes the file of credentials explicit where [Request.scratch] would hide it: without XDG_RUNTIME_DIR it is in
// a directory of the user's real id.
func credentials(sys *types.SystemContext, uid int) {
	if sys.AuthFilePath != "" || os.Getenv("XDG_RUNTIME_DIR") != "" {
		return
	}
	file := fmt.Sprintf("/run/containers/%d/auth.json", uid)
	if _, err := os.Stat(file); err == nil {
		sys.AuthFilePath = file
	}
}
