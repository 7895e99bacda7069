package images

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
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
	if !a.place.Can().Attachments {
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
	report, err := signature.Verify(ctx, a.place,
		store.Image{Top: v1.Descriptor{Digest: e.digest, Size: int64(len(e.text))}}, o)
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
		repository, _, _ := a.place.signaturesAt()
		answer.NotFound = signatureTag(repository, e.digest)
	}
	return answer, nil
}
