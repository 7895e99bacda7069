package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/registries"
)

// untagOptions are the flags of "untag".
type untagOptions struct {
	option.Registry
	manifest bool
}

// UntagCommand returns "untag".
func UntagCommand(p *option.Session) *cli.Command {
	o := &untagOptions{}
	return &cli.Command{
		Name:      "untag",
		Usage:     "remove a tag from a registry",
		ArgsUsage: "NAME:TAG",
		Description: `Asks the registry to delete the tag alone. Many registries cannot: then nothing is deleted, and
the exit status is 1. With --manifest the manifest that the tag stands for is deleted, and with it all its tags
and what is attached to it: the other tags are looked for first, and listed.` +
			program.Examples("bindery untag registry.example.com/acme/catalog:old",
				"bindery untag registry.example.com/acme/catalog:old --manifest"),
		Flags: program.Flags([]cli.Flag{
			&cli.BoolFlag{Name: "manifest", Usage: "delete the manifest with all its tags", Destination: &o.manifest},
		}, o.AccessFlags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *untagOptions) run(ctx context.Context, p *option.Session, name string) (err error) {
	named, err := parseName(name)
	if err != nil {
		return err
	}
	tagged, isTagged := named.(reference.NamedTagged)
	if _, isDigested := named.(reference.Digested); !isTagged || isDigested {
		return cmdline.Usagef("%q: expected NAME:TAG", name)
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	remote, at, err := open(ctx, p, &o.Registry, named)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remote.Close()) }()
	is, err := at.Head(ctx, tagged.Tag())
	if err != nil {
		return repositoryError(tagged.String(), err)
	}
	if o.manifest {
		return deleteManifest(ctx, p, at, tagged, is)
	}
	err = at.Untag(ctx, tagged.Tag())
	if errors.Is(err, registries.ErrNoDelete) {
		return &cmdline.Error{Class: cmdline.Classify(err), Object: tagged.String(),
			Err:  errors.New("the registry deletes no tags alone"),
			Hint: fmt.Sprintf("nothing was deleted; --manifest deletes %s with all its tags", is.Digest)}
	}
	if err != nil {
		return repositoryError(tagged.String(), err)
	}
	if now, err := at.Head(ctx, tagged.Tag()); err == nil {
		return fmt.Errorf("%s: the registry has accepted the deletion, and still has the tag, for %s", tagged, now.Digest)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return repositoryError(tagged.String(), err)
	}
	text := fmt.Sprintf("removed the tag %s", tagged)
	if _, err := at.Head(ctx, is.Digest.String()); errors.Is(err, fs.ErrNotExist) {
		p.Log.Warn(fmt.Sprintf("%s; the registry has removed its manifest %s too", text, is.Digest))
		return nil
	}
	p.Log.Info(fmt.Sprintf("%s; %s is still there", text, is.Digest))
	return nil
}

// deleteManifest deletes the manifest that a tag stands for, and names the tags that go with it.
func deleteManifest(ctx context.Context, p *option.Session, at *registries.Repository, tagged reference.NamedTagged,
	is v1.Descriptor) error {
	tags, _, err := at.Tags(ctx, 0)
	if err != nil {
		return repositoryError(at.Name(), err)
	}
	var gone []string
	for _, tag := range tags {
		other, err := at.Head(ctx, tag)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return repositoryError(at.Name()+":"+tag, err)
		case other.Digest == is.Digest:
			gone = append(gone, tag)
		}
	}
	if err := at.Delete(ctx, is.Digest); err != nil {
		e := &cmdline.Error{Class: cmdline.Classify(err), Object: tagged.String(), Err: err}
		if errors.Is(err, registries.ErrNoDelete) {
			e.Hint = "deleting is off in this registry: its administrator can allow it"
		}
		return e
	}
	p.Log.Info(fmt.Sprintf("deleted %s@%s with its tags %s", at.Name(), is.Digest, strings.Join(gone, ", ")))
	return nil
}
