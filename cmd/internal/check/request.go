package check

import (
	"context"
	"errors"
	"io"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/internal/gitrepo"
)

// readRequest reads what --changed-since and --changed name.
func (o *checkOptions) readRequest(ctx context.Context, p *option.Session, dir string, with *checkup.Options) (err error) {
	switch {
	case o.changedSince != "" && o.changed != "":
		return cmdline.Usagef("--changed-since and --changed are mutually exclusive")
	case o.allBundles && (o.changedSince != "" || o.changed != ""):
		return cmdline.Usagef("--all-bundles has no effect on a change, of which the changed bundles are checked")
	case o.changedSince != "":
		with.Request, err = submission.Since(ctx, dir, o.changedSince)
	case o.changed != "":
		var changes []gitrepo.Change
		read := func(r io.Reader) (err error) {
			changes, err = gitrepo.ReadChanges(r)
			return err
		}
		if o.changed == "-" {
			err = read(p.Stdin)
		} else {
			err = readInput(ctx, o.changed, read)
		}
		with.Request = &submission.Request{Changes: changes}
	}
	if err == nil {
		return nil
	}
	e := &cmdline.Error{Class: cmdline.ClassInput, Object: o.changedSince + o.changed, Err: err}
	if errors.Is(err, gitrepo.ErrNone) {
		e.Hint = "name the files that change by --changed, or the other state of the repository, a directory, by --changed-since"
	}
	return e
}
