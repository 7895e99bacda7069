package signature

import (
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// The names of the simple signing format.
const (
	simpleSigningType = sigblob.MediaType
	payloadType       = "cosign container image signature"
)

// simplePayload is what a signature in a .sig tag signs.
type simplePayload struct {
	// Identity is the name that the image was signed under: REPOSITORY[:TAG][@DIGEST].
	Identity string
	Digest   digest.Digest
}

// encode returns the payload in the order of members that the containers library writes. It has no time, so that the
// same key and image give the same bytes.
func (p simplePayload) encode(creator string) ([]byte, error) {
	type (
		identity struct {
			Reference string `json:"docker-reference"`
		}
		image struct {
			Digest digest.Digest `json:"docker-manifest-digest"`
		}
		critical struct {
			Identity identity `json:"identity"`
			Image    image    `json:"image"`
			Type     string   `json:"type"`
		}
		optional struct {
			Creator string `json:"creator"`
		}
	)
	return json.Marshal(struct {
		Critical critical `json:"critical"`
		Optional optional `json:"optional"`
	}{critical{identity{p.Identity}, image{p.Digest}, payloadType}, optional{creator}})
}

// parseSimple reads a payload. Everything in "critical" must be understood.
func parseSimple(text []byte) (simplePayload, error) {
	top := parseObject(text, "critical", "optional")
	critical := top.object("critical").checkMembers("identity", "image", "type")
	if kind := critical.text("type"); kind != payloadType {
		top.invalid("the type of the signature is %.60q, expected %q", kind, payloadType)
	}
	image := critical.object("image").checkMembers("docker-manifest-digest")
	identity := critical.object("identity").checkMembers("docker-reference")
	p := simplePayload{Digest: digest.Digest(image.text("docker-manifest-digest"))}
	top.fail(verify.Digest(p.Digest))
	p.Identity = identity.text("docker-reference")
	return p, *top.err
}

// Identity is the name that a signature must have been made for.
type Identity struct {
	name reference.Named
}

// ParseIdentity reads REPOSITORY:TAG, which a signature must have exactly, or REPOSITORY or REPOSITORY@DIGEST, whose
// repository it must have.
func ParseIdentity(text string) (Identity, error) {
	name, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: identity %.300q: %v", fault.ErrInvalid, text, err)
	}
	return Identity{name}, nil
}

// String returns the identity with its registry.
func (i Identity) String() string {
	if i.name == nil {
		return ""
	}
	return i.name.String()
}

// Exact tells whether the identity has a tag or a digest, as that of a signature must.
func (i Identity) Exact() bool { return i.name != nil && !reference.IsNameOnly(i.name) }

// accepts tells whether a signature's identity is the wanted one.
func (i Identity) accepts(signed string) bool {
	name, err := reference.ParseNormalizedNamed(signed)
	if err != nil || name.Name() != i.name.Name() {
		return false
	}
	if _, byDigest := i.name.(reference.Canonical); byDigest {
		return true
	}
	want, tagged := i.name.(reference.Tagged)
	if !tagged {
		return true
	}
	if _, also := name.(reference.Canonical); also {
		return false // it was made for one digest, under a tag that may stand for another one
	}
	got, tagged := name.(reference.Tagged)
	return tagged && got.Tag() == want.Tag()
}
