package library

import (
	"context"
	"errors"

	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/docker/archive"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/internal/layouts"
	"github.com/operator-bindery/bindery/images/internal/libimage"
	"github.com/operator-bindery/bindery/images/transport"
)

// fillFiles returns what writes an archive of docker or a directory beside its place.
func fillFiles(name transport.Name) func(context.Context, string, string, transport.Content) (*transport.Filled, error) {
	return func(ctx context.Context, path, image string, c transport.Content) (_ *transport.Filled, err error) {
		out, err := layouts.NewOutput(ctx, transport.Destination{Transport: name, Path: path, Name: image})
		if err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, out.Discard())
			}
		}()
		var to types.ImageReference
		switch staged := out.Staged(); {
		case name == transport.Directory:
			to, err = directory.NewReference(staged)
		case image == "":
			to, err = archive.NewReference(staged, nil)
		default:
			to, err = archive.ParseReference(staged + ":" + image)
		}
		if err != nil {
			return nil, err
		}
		filled, err := libimage.Copy(ctx, to, c.From, c.Top, c.Private, name == transport.DockerArchive, c.Event)
		if err != nil {
			return nil, err
		}
		filled.Commit, filled.Discard = out.Commit, out.Discard
		return filled, out.Finish(ctx)
	}
}
