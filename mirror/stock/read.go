package stock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// inventoryReader reads an inventory line by line, so that one repository at a time is in memory as text.
type inventoryReader struct {
	limited *io.LimitedReader
	lines   *bufio.Reader
	out     *Inventory
	digests int
	tags    int
}

// read reads the header, the repositories and the end.
func (r *inventoryReader) read() error {
	r.lines = bufio.NewReaderSize(r.limited, 64<<10)
	line, err := r.line()
	if err != nil {
		return err
	}
	start, ok := bytes.CutSuffix(line, []byte(`,"repositories":[`))
	if !ok {
		return fmt.Errorf("%w: it does not begin as an inventory does", fault.ErrInvalid)
	}
	var h header
	if err := json.Unmarshal(append(bytes.Clone(start), '}'), &h); err != nil {
		return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	if h.Kind != inventoryKind || h.Version != inventoryVersion {
		return fmt.Errorf("%w: inventory %.40q of version %d: this program reads %q of version %d", fault.ErrInvalid,
			h.Kind, h.Version, inventoryKind, inventoryVersion)
	}
	if len(h.Registry) > maxName || len(h.Path) > maxName {
		return fmt.Errorf("%w: the name of the registry", fault.ErrLimit)
	}
	r.out.Registry, r.out.Path = h.Registry, h.Path
	for last := false; ; {
		line, err := r.line()
		if err != nil {
			return err
		}
		if string(line) == "]}" {
			return r.end()
		}
		if last {
			return fmt.Errorf("%w: more after the last repository", fault.ErrInvalid)
		}
		text, more := bytes.CutSuffix(line, []byte(","))
		last = !more
		if err := r.repository(text); err != nil {
			return err
		}
	}
}

// line reads a line without its end.
func (r *inventoryReader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case r.limited.N <= 0:
			return nil, fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, int64(maxText))
		case len(line) > maxRepository:
			return nil, fmt.Errorf("%w: a repository of more than %d bytes", fault.ErrLimit, maxRepository)
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF:
			return nil, fmt.Errorf("%w: it ends too early", fault.ErrInvalid)
		case err != nil:
			return nil, fmt.Errorf("%w: %w", fault.ErrInvalid, err)
		default:
			return line[:len(line)-1], nil
		}
	}
}

// end makes sure that nothing follows, and that the checksum of gzip is right.
func (r *inventoryReader) end() error {
	rest, err := io.ReadAll(io.LimitReader(r.lines, 1))
	if err != nil {
		return fmt.Errorf("%w: %w", fault.ErrInvalid, err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: more after the end", fault.ErrInvalid)
	}
	return nil
}

// repository reads one repository.
func (r *inventoryReader) repository(text []byte) error {
	var one repository
	if err := json.Unmarshal(text, &one); err != nil {
		return fmt.Errorf("%w: repository: %w", fault.ErrInvalid, err)
	}
	r.digests += len(one.Manifests) + len(one.Blobs)
	r.tags += len(one.Tags)
	switch {
	case one.Name == "" || len(one.Name) > maxName:
		return fmt.Errorf("%w: a repository without a name, or with a long one", fault.ErrInvalid)
	case r.out.repositories[one.Name] != nil:
		return fmt.Errorf("%w: the repository %.200q is there twice", fault.ErrInvalid, one.Name)
	case !fits(len(r.out.repositories)+1, r.digests, r.tags):
		return fmt.Errorf("%w: more than %d repositories, %d digests or %d tags", fault.ErrLimit, maxRepositories,
			maxDigests, maxTags)
	}
	at := &contents{tags: one.Tags}
	for tag, d := range one.Tags {
		if err := verify.Digest(d); err != nil || len(tag) > maxName {
			return fmt.Errorf("%w: repository %.200q: tag %.140q", fault.ErrInvalid, one.Name, tag)
		}
	}
	add := func(to *set, d digest.Digest) error {
		if err := verify.Digest(d); err != nil {
			return fmt.Errorf("repository %.200q: %w", one.Name, err)
		}
		if s, ok := sumOf(d); ok {
			*to = append(*to, s)
		}
		return nil
	}
	for _, d := range one.Manifests {
		if err := add(&at.manifests, d); err != nil {
			return err
		}
	}
	for _, b := range one.Blobs {
		if err := add(&at.blobs, b.Digest); err != nil {
			return err
		}
	}
	at.manifests, at.blobs = at.manifests.sorted(), at.blobs.sorted()
	r.out.repositories[one.Name] = at
	return nil
}
