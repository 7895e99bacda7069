package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/mirror/releases"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

// release is a release that the image set asks for, or one that it asks for and that cannot be had.
type release struct {
	chosen releases.Release
	// image is the release image. It is copied after its components.
	image      *item
	components []*item
	// signature is the one that was verified; nil if none is asked for.
	signature *signed.Signature
	// hasKubeVirt tells that the release names one of the boot images that are asked for.
	hasKubeVirt bool
	failed      error
	account     ReleaseAccount
}

// ReleaseAccount is what became of one release.
type ReleaseAccount struct {
	Version      string `json:"version,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	// Why says by which channel and bound it is chosen.
	Why         string        `json:"why,omitempty"`
	Source      string        `json:"source,omitempty"`
	Destination string        `json:"destination,omitempty"`
	Digest      digest.Digest `json:"digest,omitempty"`
	// Components is how many images the release names, with boot images that are asked for.
	Components int `json:"components"`
	// Published tells that the destination has the release with all its components, Present that it had it before.
	Published bool   `json:"published"`
	Present   bool   `json:"present,omitempty"`
	Error     string `json:"error,omitempty"`
}

// Name is how messages name a release. It is empty for one of which nothing is known but why it cannot be had.
func (a *ReleaseAccount) Name() string {
	if a.Version == "" {
		return strings.TrimPrefix(a.Source, "docker://")
	}
	return a.Version + " (" + a.Architecture + ")"
}

// lack tells why the release image is not copied: one of its components is not there.
func (r *release) lack() string {
	for _, i := range r.components {
		if i.failed() {
			return fmt.Sprintf("its component %s is not there", i.name())
		}
	}
	return ""
}

// isBlocked tells that a rule of the image set leaves the release image out. Its components stay.
func (r *release) isBlocked() bool { return r.image != nil && r.image.account.Status == Blocked }

// isLeftOut tells that the release is not at the target, and does not count as mirrored there.
func (r *release) isLeftOut(dry bool) bool {
	return r.failed != nil || !r.account.Published && !dry && !r.isBlocked()
}

// settle fills in the account after the images are copied.
func (r *release) settle() {
	if r.image == nil {
		return
	}
	of := r.image.account
	r.account.Digest = of.Digest
	r.account.Published = r.image.isThere()
	r.account.Present = of.Status == Present
	if of.Status == Failed || of.Status == Skipped {
		r.account.Error = of.Error
	}
}

// unsigned counts the single images of a release that were copied and have no signature of cosign. The vendor signs no
// indexes.
func (r *release) unsigned() (n int) {
	for _, i := range append([]*item{r.image}, r.components...) {
		if i != nil && i.account.Status == Copied && !manifest.MIMETypeIsMultiImage(i.result().mediaType) &&
			!slices.Contains(i.result().attached, referrers.TagOf(i.result().digest, referrers.Signatures)) {
			n++
		}
	}
	return n
}

// GraphAccount is what became of the image with the data of update graphs.
type GraphAccount struct {
	Destination string        `json:"destination"`
	Digest      digest.Digest `json:"digest,omitempty"`
	Published   bool          `json:"published"`
	Present     bool          `json:"present,omitempty"`
	Error       string        `json:"error,omitempty"`
}
