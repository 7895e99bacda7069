package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/directory"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/transfer"
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
	ref    types.ImageReference
	place  *Place
}

// verdict is what is known about a manifest, for what is below it.
type verdict struct {
	accepted bool
	refused  []error // about the index and those that it is in
}

// admission returns what asks the policy about an image; nil if every image is accepted.
func (c *Client) admission(n sourceName, name string, place *Place) (*admission, error) {
	if c.policy == nil && !c.o.RequireSigned && len(c.o.TrustedKeys) == 0 {
		return nil, nil
	}
	ref, err := n.policyName()
	if err != nil {
		return nil, err
	}
	return &admission{client: c, name: name, ref: ref, place: place}, nil
}

// admit asks the policy about a manifest or index whose text has been read and compared with its digest. An index that is
// refused is an error only if the policy decides by the name alone: else the verdict is for what is in it.
func (a *admission) admit(ctx context.Context, above verdict, text []byte, kind string) (verdict, error) {
	if a == nil || above.accepted {
		return verdict{accepted: true}, nil
	}
	e := &evidence{text: text, digest: digest.FromBytes(text)}
	key := verifiedKey(a.ref, e.digest)
	if _, before := a.client.verified.Load(key); before {
		return verdict{accepted: true}, nil
	}
	refusal, err := a.judge(ctx, e)
	if err != nil {
		return verdict{}, err
	}
	if refusal == nil {
		if e.read {
			a.client.verified.Store(key, true)
			a.client.event(transfer.Event{Kind: transfer.EventVerified, Destination: redact.Text(a.name),
				Blob: e.digest, Size: int64(len(text))})
		}
		return verdict{accepted: true}, nil
	}
	refused := append(slices.Clone(above.refused), refusal)
	if e.read && manifest.MIMETypeIsMultiImage(kind) {
		return verdict{refused: refused}, nil
	}
	return verdict{}, joinRefusals(refused)
}

// joinRefusals returns one error about an image and the index that it is in.
func joinRefusals(refused []error) error {
	var last, top *PolicyError
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
func (a *admission) judge(ctx context.Context, e *evidence) (refusal *PolicyError, err error) {
	if len(a.client.o.TrustedKeys) > 0 {
		return a.judgeKeys(ctx, e)
	}
	policy := a.client.policy
	if policy == nil {
		return &PolicyError{Unverified: true,
			Err: errors.New("a signature is required, and there is no policy.json that says whose")}, nil
	}
	scope, rs, err := policy.requirements(a.ref)
	if err != nil {
		return nil, err
	}
	has := func(is func(requirement) bool) bool { return slices.ContainsFunc(rs, is) }
	rejects := func(r requirement) bool { return r.Type == "reject" }
	if a.client.o.RequireSigned && !has(requirement.verifies) && !has(rejects) {
		return &PolicyError{File: policy.path, Scope: scope, Unverified: true, Err: fmt.Errorf(
			"a signature is required, and %s accepts the image without one (%s)", policy.path, scope)}, nil
	}
	// A policy that decides by the name needs no signatures.
	probe := &nameOnly{ref: a.ref}
	refused, err := a.ask(ctx, image.UnparsedInstance(probe, nil))
	if err != nil {
		return nil, err
	}
	if probe.asked {
		if err := policy.checkKeys(scope, rs); err != nil {
			return nil, err
		}
		if refused, err = a.askWith(ctx, e); err != nil {
			return nil, err
		}
	}
	if refused == nil {
		return nil, nil
	}
	answer := &PolicyError{File: policy.path, Scope: scope, Err: refused}
	if e.read && has(func(r requirement) bool { return r.Type == "sigstoreSigned" }) {
		a.explain(answer, e)
	}
	return answer, nil
}

// ask asks the policy about an image that the library reads. The error refused is its answer.
func (a *admission) ask(ctx context.Context, unparsed types.UnparsedImage) (refused, err error) {
	// A context is for one goroutine at a time, and costs nothing.
	pc, err := signature.NewPolicyContext(a.client.policy.policy)
	if err != nil {
		return nil, &PolicyFileError{a.client.policy.path, err}
	}
	pc.RequireSignatureVerification(a.client.o.RequireSigned)
	ok, refused := pc.IsRunningImageAllowed(ctx, unparsed)
	if err := pc.Destroy(); err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case ok:
		return nil, nil
	case refused == nil:
		return errors.New("the image is not allowed"), nil
	}
	return refused, nil
}

// evidence is what the policy is asked about: a manifest or index, and the signatures that its source has for it.
type evidence struct {
	text   []byte
	digest digest.Digest

	read  bool // whether the policy wanted signatures, so that they have been read
	found int
}

// askWith asks the policy about an image and its signatures.
//
// The library takes sigstore's signatures only from sources of its own: what a types.ImageSource returns is to it a
// signature of GPG. So the text and the signatures are put into a directory of its transport "dir:".
func (a *admission) askWith(ctx context.Context, e *evidence) (refused, err error) {
	e.read = true
	if a.place.Original != nil {
		// A store has the manifest that was signed, beside the one that is made of its layers.
		e.found = -1
		return a.ask(ctx, image.UnparsedInstanceWithReference(image.UnparsedInstance(a.place.Original, nil), a.ref))
	}
	var blobs [][]byte
	if a.place.Signatures != nil {
		if blobs, err = a.place.Signatures(ctx, e.digest); err != nil {
			return nil, fmt.Errorf("reading signatures: %w", err)
		}
	}
	e.found = len(blobs)
	dir, err := os.MkdirTemp(a.client.scratch.Path, "signed-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := map[string][]byte{"manifest.json": e.text}
	for i, blob := range blobs {
		files[fmt.Sprintf("signature-%d", i+1)] = blob
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	ref, err := directory.NewReference(dir)
	if err != nil {
		return nil, err
	}
	src, err := ref.NewImageSource(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	return a.ask(ctx, image.UnparsedInstanceWithReference(image.UnparsedInstance(src, nil), a.ref))
}

// explain adds to a refusal where signatures were looked for.
func (a *admission) explain(answer *PolicyError, e *evidence) {
	if !a.place.Can().Attachments {
		return
	}
	repository, wanted, file := a.place.signaturesAt()
	switch {
	case !wanted:
		answer.SearchOff, answer.SearchOffBy = repository, file
	case e.found == 0:
		answer.NotFound = signatureTag(repository, e.digest)
	}
}

// signatureTag names where attached signatures of a manifest are: a tag, in a repository if that has a name.
func signatureTag(repository string, d digest.Digest) string {
	if repository == "" {
		return sigblob.Tag(d)
	}
	return repository + ":" + sigblob.Tag(d)
}

// nameOnly is a source with a name and no content. It records whether the content was requested.
type nameOnly struct {
	ref   types.ImageReference
	asked bool
}

var errNameOnly = errors.New("only the name is known")

func (n *nameOnly) Reference() types.ImageReference { return n.ref }
func (n *nameOnly) Close() error                    { return nil }
func (n *nameOnly) HasThreadSafeGetBlob() bool      { return false }

func (n *nameOnly) GetManifest(context.Context, *digest.Digest) ([]byte, string, error) {
	n.asked = true
	return nil, "", errNameOnly
}

func (n *nameOnly) GetBlob(context.Context, types.BlobInfo, types.BlobInfoCache) (io.ReadCloser, int64, error) {
	n.asked = true
	return nil, 0, errNameOnly
}

func (n *nameOnly) GetSignatures(context.Context, *digest.Digest) ([][]byte, error) {
	n.asked = true
	return nil, errNameOnly
}

func (n *nameOnly) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}
