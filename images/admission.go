package images

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/images/internal/trust"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/redact"
)

// admission asks the signature policy about what is read of one image. An image is accepted if its own manifest is, or
// an index that it is in: a signature of an index covers what is in it, by digests. So of an index whose signature is
// not accepted, every image that is read must be.
//
// The policy is asked about the texts that have been read, and nothing is read again: what was verified is what is
// used. It is asked under the name of the image, also if the image is read from a mirror.
type admission struct {
	client *Client
	name   string // as given, for events
	asked  transport.Source
	place  *transport.Place
}

// verdict is what the policy has said about a manifest and the indexes above it. It is passed down to the entries of an
// index.
type verdict struct {
	accepted bool
	refused  []error // why the policy refuses the index and those that it is in
}

// admission returns what asks the policy about an image; nil if every image is accepted.
func (c *Client) admission(n transport.Source, name string, place *transport.Place) *admission {
	if c.policy == nil && !c.demandsSigned() {
		return nil
	}
	return &admission{client: c, name: name, asked: n, place: place}
}

// admit asks the policy about a manifest or index whose text has been read and compared with its digest. An index that
// is refused is an error only if the policy decides by the name alone: else the verdict is for what is in it.
func (a *admission) admit(ctx context.Context, above verdict, text []byte, kind string) (verdict, error) {
	if a == nil || above.accepted {
		return verdict{accepted: true}, nil
	}
	e := &trust.Evidence{Text: text, Digest: digest.FromBytes(text), Signatures: a.place.Signatures,
		Original: a.place.Original, Signed: a.client.o.RequireSigned, Dir: a.client.remote.Scratch()}
	key := verifiedKey(a.asked, e.Digest)
	if _, before := a.client.verified.Load(key); before {
		return verdict{accepted: true}, nil
	}
	refusal, err := a.judge(ctx, e)
	if err != nil {
		return verdict{}, err
	}
	if refusal == nil {
		if e.Read {
			a.client.verified.Store(key, true)
			a.client.event(store.Event{Kind: store.EventVerified, Destination: redact.Text(a.name),
				Blob: e.Digest, Size: int64(len(text))})
		}
		return verdict{accepted: true}, nil
	}
	refused := append(slices.Clone(above.refused), refusal)
	if e.Read && manifest.MIMETypeIsMultiImage(kind) {
		return verdict{refused: refused}, nil
	}
	return verdict{}, joinRefusals(refused)
}

// nothingVouches is the error about an index that is refused, and has no entry that is accepted.
func nothingVouches(index *store.Node, is verdict) error {
	err := joinRefusals(is.refused)
	var refusal *trust.PolicyError
	if !errors.As(err, &refusal) {
		return err
	}
	own := *refusal
	own.Err = fmt.Errorf("the index %s has no image that vouches for it, and needs a signature of its own: %w",
		index.Digest, refusal.Err)
	return &own
}

// joinRefusals returns one error about an image and the index that it is in.
func joinRefusals(refused []error) error {
	var last, top *trust.PolicyError
	if len(refused) == 1 || !errors.As(refused[len(refused)-1], &last) || !errors.As(refused[0], &top) {
		return refused[len(refused)-1]
	}
	both := *last
	if text := last.Err.Error(); text == top.Err.Error() {
		both.Err = fmt.Errorf("neither the image nor its index is accepted: %w", last.Err)
	} else {
		both.Err = fmt.Errorf("the image: %w; its index: %.1000s", last.Err, top.Err.Error())
	}
	return &both
}

// judge asks the policy. refusal is its answer; err is a failure to ask, such as of a registry that does not answer.
func (a *admission) judge(ctx context.Context, e *trust.Evidence) (refusal *trust.PolicyError, err error) {
	if a.client.trustsSigners() {
		return a.judgeKeys(ctx, e)
	}
	policy := a.client.policy
	if policy == nil {
		return &trust.PolicyError{Unverified: true,
			Err: errors.New("a signature is required, and there is no policy.json that says whose")}, nil
	}
	rule, err := policy.Rule(a.asked)
	if err != nil {
		return nil, err
	}
	if a.client.o.RequireSigned && !rule.Verifies && !rule.Rejects {
		return &trust.PolicyError{File: rule.File, Scope: rule.Scope, Unverified: true, Err: fmt.Errorf(
			"a signature is required, and %s accepts the image without one (%s)", rule.File, rule.Scope)}, nil
	}
	refused, err := policy.Judge(ctx, a.asked, e)
	if err != nil || refused == nil {
		return nil, err
	}
	answer := &trust.PolicyError{File: rule.File, Scope: rule.Scope, Err: refused}
	if e.Read && rule.Attached {
		a.explain(answer, e)
	}
	return answer, nil
}

// explain adds to a refusal where signatures were looked for.
func (a *admission) explain(answer *trust.PolicyError, e *trust.Evidence) {
	if !a.place.Can().Attachments {
		return
	}
	repository, wanted, file := a.signaturesAt()
	switch {
	case !wanted:
		answer.SearchOff, answer.SearchOffBy = repository, file
	case e.Found == 0:
		answer.NotFound = signatureTag(repository, e.Digest)
	}
}

// signatureTag names where attached signatures of a manifest are: a tag, in a repository if that has a name.
func signatureTag(repository string, d digest.Digest) string {
	if repository == "" {
		return sigblob.Tag(d)
	}
	return repository + ":" + sigblob.Tag(d)
}

// signaturesAt tells where attached signatures are looked for: where the place says, or else in the repository of its
// name.
func (a *admission) signaturesAt() (repository string, wanted bool, file string) {
	if a.place.SignaturesAt != nil {
		return a.place.SignaturesAt()
	}
	return a.place.Reader.Name(), true, ""
}
