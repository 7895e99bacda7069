package signed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// statementType is the type of statements on images.
const statementType = "atomic container signature"

// statement is what is signed, in the form of container-signature(5).
type statement struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest digest.Digest `json:"docker-manifest-digest"`
		} `json:"image"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
	} `json:"critical"`
	Optional jsontext.Value `json:"optional"`
}

// vendorRepositories are where the vendor publishes releases: OpenShift, OKD, and what its CI builds.
var vendorRepositories = []imageset.Target{
	{Host: "quay.io", Path: "openshift-release-dev/ocp-release"},
	{Host: "quay.io", Path: "okd/scos-release"},
	{Host: "quay.io", Path: "openshift/okd"},
	{Host: "registry.ci.openshift.org", Path: "ocp/release"},
}

// check returns the reference that a verified text is about, if the text is a statement on an image and its repository
// may stand for that of the image.
func (o Options) check(text []byte, image imageset.Ref) (ref imageset.Ref, err error) {
	var s statement
	if err := json.Unmarshal(text, &s, json.RejectUnknownMembers(true)); err != nil {
		return ref, fmt.Errorf("its content is no statement on an image: %w", err)
	}
	named := s.Critical.Identity.Reference
	if s.Critical.Type != statementType {
		return ref, fmt.Errorf("its content is of type %s, not %q", fault.Quote(s.Critical.Type), statementType)
	}
	if got := s.Critical.Image.Digest; got != image.Digest {
		return ref, fmt.Errorf("it is about another image, %s (%s)", fault.Quote(got.String()), fault.Quote(named))
	}
	if strings.Contains(named, "://") {
		return ref, fmt.Errorf("it names the image %s, which is in no registry", fault.Quote(named))
	}
	if ref, err = imageset.ParseRef(named); err != nil {
		return ref, fmt.Errorf("it names no image: %w", err)
	}
	if ref.Digest != "" && ref.Digest != image.Digest {
		return ref, fmt.Errorf("it names the image %s, which has another digest", fault.Quote(named))
	}
	for _, at := range slices.Concat([]imageset.Target{{Host: image.Host, Path: image.Path}}, vendorRepositories,
		o.Sources) {
		if ref.AtHost(at.Host) && ref.Path == at.Path {
			return ref, nil
		}
	}
	return ref, fmt.Errorf("it names the image %s, of another repository than the release: if it is right, allow that"+
		" with --release-source %s", fault.Quote(named), ref.Repository())
}
