package medium

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Annotations of entries of index.json that have no name: the repository that a referrer belongs to, and its subject.
const (
	annotationRepository = "io.github.operator-bindery.mirror.repository"
	annotationSubject    = "io.github.operator-bindery.mirror.subject"
)

// member is a small file of an archive.
type member struct {
	name    string
	content []byte
}

// ociMembers returns what makes an OCI layout of the blobs: oci-layout and index.json. Each tag is an entry named
// PATH:TAG; referrers are entries without a name, as ORAS lists them, which tell their repository and subject.
func ociMembers(all []*listing) ([]member, error) {
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{}}
	for _, l := range all {
		for _, tag := range slices.Sorted(maps.Keys(l.tags)) {
			d := l.tags[tag]
			d.Annotations = map[string]string{v1.AnnotationRefName: l.path + ":" + tag}
			index.Manifests = append(index.Manifests, d)
		}
		for _, a := range l.attached {
			d := a.Descriptor
			d.Annotations = maps.Clone(d.Annotations)
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			delete(d.Annotations, v1.AnnotationRefName) // it would be the name of an image here
			d.Annotations[annotationRepository] = l.path
			d.Annotations[annotationSubject] = a.subject.digest().String()
			index.Manifests = append(index.Manifests, d)
		}
	}
	layout, err := json.Marshal(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(index)
	if len(text) > maxIndexJSON {
		err = fmt.Errorf("%s: %w: %d bytes (limit %d): mirror fewer images at once", v1.ImageIndexFile, fault.ErrLimit,
			len(text), maxIndexJSON)
	}
	return []member{{v1.ImageLayoutFile, layout}, {v1.ImageIndexFile, text}}, err
}
