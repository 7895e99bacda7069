package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/layouts"
	"github.com/operator-bindery/bindery/internal/registry"
	"github.com/operator-bindery/bindery/internal/sigblob"
)

// judgeKeys requires a signature of a manifest or index by one of the trusted keys, in place of what the policy
// requires. It can be a bundle too, which policies do not know, and registries.d does not decide whether it is looked
// for. What the policy rejects stays rejected.
//
// An attached signature must be for the name of the image. Bundles have no name, and neither have images in layouts.
func (a *admission) judgeKeys(ctx context.Context, e *evidence) (refusal *PolicyError, err error) {
	if policy := a.client.policy; policy != nil {
		scope, rs, err := policy.requirements(a.ref)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rs, func(r requirement) bool { return r.Type == "reject" }) {
			return &PolicyError{File: policy.path, Scope: scope,
				Err: fmt.Errorf("%s rejects the image (%s)", policy.path, scope)}, nil
		}
	}
	var reader store.Reader
	place := ""
	switch src := a.src.(type) {
	case *registry.Source:
		place, _, _ = src.SignaturePlace()
		place += ":"
		reader = src.Repository()
	case *carriedSource:
		place, reader = src.signaturePlace(), src.place
	case *layouts.Source:
		if at := src.Repository(); at != nil {
			reader = at
		}
	}
	if reader == nil {
		return &PolicyError{Err: fmt.Errorf("an image of %s has no signature that a trusted key could verify: it can "+
			"be in a registry or an OCI layout", a.ref.Transport().Name())}, nil
	}
	o := signature.VerifyOptions{Keys: a.client.o.TrustedKeys}
	if named := a.ref.DockerReference(); named != nil {
		if o.Identity, err = signature.ParseIdentity(named.String()); err != nil {
			return nil, err
		}
	}
	e.read = true
	of := digest.FromBytes(e.text)
	report, err := signature.Verify(ctx, reader,
		store.Image{Top: v1.Descriptor{Digest: of, Size: int64(len(e.text))}}, o)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading signatures: %w", err)
	case report.Verified:
		return nil, nil
	}
	answer := &PolicyError{Err: errors.New("no trusted key has signed the image")}
	var why []string
	for _, f := range report.Refusals() {
		why = append(why, fmt.Sprintf("%s: %s", f.Form, f.Problem))
	}
	if len(why) > 0 {
		answer.Err = fmt.Errorf("%w: %s", answer.Err, strings.Join(why, "; "))
	} else {
		answer.NotFound = place + sigblob.Tag(of)
	}
	return answer, nil
}
