package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Local reads a chart of a file or a directory, which is packed; or, where the path is not there, what the other side has kept of
// it.
func (g *Getter) Local(ctx context.Context, at string) (*Archive, error) {
	a := &Archive{Source: at}
	info, err := os.Stat(at)
	kept := false
	switch {
	case at == "":
		return nil, fmt.Errorf("%w: a local chart without a path", fault.ErrInvalid)
	case errors.Is(err, fs.ErrNotExist) && g.Client == nil:
		a.Data, err = readStored(g.Stored, localFile(at), MaxArchive)
		if kept = err == nil; errors.Is(err, fs.ErrNotExist) {
			err = absent(fmt.Sprintf("there is no chart %s here, and none was kept of it by the run that wrote the archive", fault.Quote(at)))
		}
	case err == nil && info.IsDir():
		if g.Pack == nil {
			return nil, fmt.Errorf("%w: %s is a directory", fault.ErrInvalid, fault.Quote(at))
		}
		a.Data, err = g.Pack(ctx, at)
	case err == nil:
		a.Data, err = regularfile.ReadNamed(ctx, at, MaxArchive)
	}
	if err != nil {
		return nil, err
	}
	a.Digest = digest.FromBytes(a.Data)
	if g.Save != nil && (g.SaveLocal || kept) {
		err = g.Save(localFile(at), a.Data)
	}
	return a, err
}
