package images

import (
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
)

// judgeKeys requires a signature of a manifest or index by one of the trusted keys or identities, in place of what the policy
// requires. It can be a bundle too, which policies do not know, and registries.d does not decide whether it is looked
// for. What the policy rejects stays rejected.
//
// An attached signature must be for the name of the image. Bundles have no name, and neither have images in layouts.
func (a *admission) judgeKeys(ctx context.Context, e *trust.Evidence) (refusal *trust.PolicyError, err error) {
	if policy := a.client.policy; policy != nil {
		rule, err := policy.Rule(a.asked)
		if err != nil {
			return nil, err
		}
		if rule.Rejects {
			return &trust.PolicyError{File: rule.File, Scope: rule.Scope,
				Err: fmt.Errorf("%s rejects the image (%s)", rule.File, rule.Scope)}, nil
		}
	}
	if !a.place.Can().Attachments {
		return &trust.PolicyError{Err: fmt.Errorf("an image of %s has no signature that a trusted key could verify: it "+
			"can be in a registry or an OCI layout", a.asked.Transport)}, nil
	}
	o := signature.VerifyOptions{Keys: a.client.o.TrustedKeys, Identities: a.client.o.TrustedIdentities}
	if named := a.asked.Named(); named != nil {
		if o.Identity, err = signature.ParseIdentity(named.String()); err != nil {
			return nil, err
		}
	}
	signers := "no trusted key"
	switch {
	case o.Identities != nil && len(o.Keys) > 0:
		signers = "no trusted key and no trusted identity"
	case o.Identities != nil:
		signers = "no trusted identity"
	}
	e.Read = true
	report, err := o.Verify(ctx, a.place,
		store.Image{Top: v1.Descriptor{Digest: e.Digest, Size: int64(len(e.Text))}})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading signatures: %w", err)
	case report.Verified:
		return nil, nil
	}
	answer := &trust.PolicyError{Err: errors.New(signers + " has signed the image")}
	var why []string
	for _, f := range report.Refusals() {
		why = append(why, fmt.Sprintf("%s: %s", f.Form, f.Problem))
	}
	if len(why) > 0 {
		answer.Err = fmt.Errorf("%w: %s", answer.Err, strings.Join(why, "; "))
	} else {
		repository, _, _ := a.signaturesAt()
		answer.NotFound = signatureTag(repository, e.Digest)
	}
	return answer, nil
}
