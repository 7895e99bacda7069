package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// IfNone is the value of [PushOptions.IfDigest] for tags that must not exist.
const IfNone = "none"

// ConflictError is the error for a tag that points to another image than IfDigest, perhaps since another client has
// moved it. The tag is not written.
type ConflictError struct {
	// Name is "HOST/REPOSITORY:TAG".
	Name string
	// Want and Got are the expected and the actual digest; empty for no image.
	Want, Got digest.Digest
}

func (e *ConflictError) Error() string {
	show := func(d digest.Digest) string {
		if d == "" {
			return "no image"
		}
		return string(d)
	}
	return fmt.Sprintf("%s stands for %s and not for %s: it was not changed", e.Name, show(e.Got), show(e.Want))
}

// ErrorClass returns [fault.Conflict].
func (e *ConflictError) ErrorClass() fault.Class { return fault.Conflict }

// expect returns the digest that a target's tag points to, and compares it with IfDigest. It is no conflict if the tag
// points to the image already, for example after an earlier attempt.
func (r *pushedRepository) expect(ctx context.Context, t Target) (got digest.Digest, err error) {
	tag := t.tag()
	if tag == nil {
		return "", nil
	}
	if got, err = r.current(ctx, tag.Tag()); err != nil {
		return "", fmt.Errorf("what %s stands for: %w", tag, err)
	}
	if want := r.p.o.IfDigest; want == "" || want == string(got) || want == IfNone && got == "" ||
		got == r.p.image.top().digest {
		return got, nil
	}
	return got, r.conflict(tag, got)
}

func (r *pushedRepository) conflict(tag reference.NamedTagged, got digest.Digest) *ConflictError {
	want := digest.Digest(r.p.o.IfDigest)
	if want == IfNone {
		want = ""
	}
	return &ConflictError{Name: tag.String(), Want: want, Got: got}
}

// current returns the digest of the image with a tag or digest; empty if there is none.
func (r *pushedRepository) current(ctx context.Context, name string) (d digest.Digest, err error) {
	path, accept := "/manifests/"+name, request{accept: manifestTypes}
	head := accept
	head.method = http.MethodHead
	err = r.retry(ctx, "", func() error {
		resp, err := r.repo.try(ctx, head, path, "")
		if err == nil {
			d = digest.Digest(resp.Header.Get("Docker-Content-Digest"))
		}
		return err
	})
	if hasStatus(err, http.StatusNotFound) {
		return "", nil
	}
	if err != nil || verify.Digest(d) == nil {
		return d, err
	}
	// The header is optional.
	_, err = r.repo.get(ctx, path, accept, r.p.o.Client.Retries, func(resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, limit.MaxManifest+1))
		d = digest.FromBytes(text)
		return err
	})
	return d, err
}

// hasManifest tells whether the repository has a manifest. Answers without its digest do not count.
func (r *pushedRepository) hasManifest(ctx context.Context, m pushedManifest) (there bool, err error) {
	q := request{method: http.MethodHead, accept: manifestTypes}
	err = r.retry(ctx, "", func() error {
		resp, err := r.repo.try(ctx, q, "/manifests/"+m.digest.String(), "")
		there = err == nil && resp.Header.Get("Docker-Content-Digest") == m.digest.String()
		return err
	})
	if hasStatus(err, http.StatusNotFound, http.StatusMethodNotAllowed) || IsUnauthorized(err) {
		return false, nil
	}
	return there, err
}

// tag writes the tag of a target, unless it points to the image already.
func (r *pushedRepository) tag(ctx context.Context, t Target) error {
	tag := t.tag()
	if tag == nil {
		return nil
	}
	top := r.p.image.top()
	var only http.Header
	switch want := r.p.o.IfDigest; want {
	case "":
	case IfNone:
		only = http.Header{"If-None-Match": {"*"}}
	default:
		only = http.Header{"If-Match": {`"` + want + `"`}}
	}
	if only != nil || r.manifests == 0 {
		// Most registries cannot compare and set in one step, so the tag is compared just before it is written.
		if got, err := r.expect(ctx, t); err != nil || got == top.digest {
			return err
		}
	}
	err := r.putManifest(ctx, top, tag.Tag(), only)
	if hasStatus(err, http.StatusPreconditionFailed) {
		got, found := r.current(ctx, tag.Tag())
		switch {
		case found != nil:
			return found
		case got == top.digest: // the answer to an earlier attempt was lost
			return nil
		}
		return r.conflict(tag, got)
	}
	return err
}

// putManifest writes a manifest under a tag or its digest.
func (r *pushedRepository) putManifest(ctx context.Context, m pushedManifest, name string, header http.Header) error {
	q := request{method: http.MethodPut, success: accepted, payload: bytesPayload(m.text, m.kind),
		header: http.Header{"X-Idempotency-Key": nil}}
	for key, values := range header {
		q.header[key] = values
	}
	err := r.retry(ctx, "", func() error {
		resp, err := r.repo.try(ctx, q, "/manifests/"+name, "")
		if err != nil {
			return err
		}
		if said := digest.Digest(resp.Header.Get("Docker-Content-Digest")); verify.Digest(
			said) == nil && said != m.digest {
			return fmt.Errorf("%w: the registry has stored %s in place of %s", fault.ErrIntegrity, said, m.digest)
		}
		r.manifests++
		r.manifestBytes += int64(len(m.text))
		return nil
	})
	if err != nil {
		return fmt.Errorf("manifest %s: %w", name, err)
	}
	return nil
}
