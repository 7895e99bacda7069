package mirror

import (
	"context"
	"errors"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/internal/sizes"
	"github.com/operator-bindery/bindery/mirror/internal/workdir"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// open opens the places of a run, but for an archive that is written, which [places.openOutput] opens. An archive that
// is read is compared with the target before anything is copied. ask asks the target whether it is a registry first, also
// in dry runs: what one says of a target that does not answer would be wrong.
func (p *places) open(ctx context.Context, o *Options, report *report, ask bool) error {
	if o.Mode != ToDisk {
		// What is wrong with the workspace is reported before anything is copied.
		if _, err := o.Workspace.Resources(); err != nil {
			return err
		}
		if _, err := workdir.ReadRecord(o.Workspace.files(), o.Target); err != nil {
			return err
		}
		report.account.Destination = o.Target.String()
		if ask {
			if err := o.Remote.Ping(ctx, o.Target.String()); err != nil {
				return err // the error names the registry
			}
		}
		p.to = remoteTarget{o.Remote}
	}
	switch o.Mode {
	case ToMirror:
		p.from = registryOrigin{o.Images}
	case ToDisk:
		p.from = registryOrigin{o.Images}
		report.account.Destination = o.Archive
	case FromDisk:
		reader, err := medium.Open(ctx, o.Archive)
		if err != nil {
			return err
		}
		p.input = newArchive(reader, o, p.to)
		p.from = p.input
		return p.input.checkLeftOut(ctx, o)
	default:
		return fmt.Errorf("%w: mode %q", fault.ErrInvalid, o.Mode)
	}
	return nil
}

// openOutput begins the archive, or goes on with an unfinished one of the same image set and catalogs.
func (p *places) openOutput(ctx context.Context, o *Options, report *report) (err error) {
	to := o.Medium
	to.Key = o.archiveKey(o.partName())
	to.Keep = true
	to.Beside = o.leavesOutNeighbour()
	if to.SegmentBytes == 0 {
		to.SegmentBytes = o.Set.SegmentSize() << 30
	}
	if p.other, err = readOtherSide(o, report); err != nil {
		return err
	}
	p.other.configure(&to)
	if p.output, err = medium.Create(ctx, o.Archive, to); err != nil {
		return err
	}
	if n := p.output.Resumed(); n > 0 {
		report.log.info(fmt.Sprintf("going on with the unfinished archive: %d bytes are there", n))
	}
	p.to = mediumTarget{p.output}
	return nil
}

func (p *places) close() error {
	var err error
	if p.output != nil {
		err = errors.Join(err, p.output.Close())
	}
	if p.input != nil {
		err = errors.Join(err, p.input.reader.Close())
	}
	return err
}

// measure reads the manifests of an image, unless it is what the target has: then the result is nil.
func (p *places) measure(ctx context.Context, i *item, there v1.Descriptor) (_ *sizes.Image, err error) {
	from, err := p.from.open(ctx, i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.close()) }()
	if there.Digest == from.top.Digest {
		return nil, nil
	}
	return sizes.Measure(ctx, from.Reader, from.top, i.platforms)
}
