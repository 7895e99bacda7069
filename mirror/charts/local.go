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

// Local reads a chart of a file or a directory, which is packed; on the other side what was kept of it, whatever is at the path
// there, unless nothing was.
func (g *Getter) Local(ctx context.Context, at string) (*Archive, error) {
	a := &Archive{Source: at}
	if at == "" {
		return nil, fmt.Errorf("%w: a local chart without a path", fault.ErrInvalid)
	}
	data, err := []byte(nil), fs.ErrNotExist
	if g.Client == nil {
		data, err = readStored(g.Stored, localFile(at), MaxArchive)
	}
	kept := err == nil
	if errors.Is(err, fs.ErrNotExist) {
		data, err = g.readLocal(ctx, at)
	}
	a.Data = data
	if err != nil {
		return nil, err
	}
	a.Digest = digest.FromBytes(a.Data)
	if g.Save != nil && (g.SaveLocal || kept) {
		err = g.Save(localFile(at), a.Data)
	}
	return a, err
}

// readLocal reads a chart at a path.
func (g *Getter) readLocal(ctx context.Context, at string) ([]byte, error) {
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist) && g.Client == nil:
		return nil, absent(fmt.Sprintf("there is no chart %s here, and none was kept of it by the run that wrote the archive", fault.Quote(at)))
	case err != nil:
		return nil, err
	case !info.IsDir():
		return regularfile.ReadNamed(ctx, at, MaxArchive)
	case g.Pack == nil:
		return nil, fmt.Errorf("%w: %s is a directory", fault.ErrInvalid, fault.Quote(at))
	}
	return g.Pack(ctx, at)
}
