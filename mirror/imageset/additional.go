package imageset

import (
	"cmp"
	"errors"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// AdditionalImage is an image that no catalog names.
type AdditionalImage struct {
	// Name has a tag, a digest or both, or is a layout. Written is the reference as it stands in the file.
	Name    Ref
	Written string
	// TargetRepo replaces the path at the destination, TargetTag the tag.
	TargetRepo, TargetTag string
	Platforms             []v1.Platform
	Line                  int
}

// additionalForm is an additional image as it is written.
type additionalForm struct {
	Name       string         `json:"name"`
	TargetRepo string         `json:"targetRepo,omitempty"`
	TargetTag  string         `json:"targetTag,omitempty"`
	Platforms  []platformForm `json:"platforms,omitempty"`
}

func (a *AdditionalImage) form() additionalForm {
	return additionalForm{a.Written, a.TargetRepo, a.TargetTag, platforms(a.Platforms)}
}

// readAdditional reads an entry of additionalImages.
func (r *reader) readAdditional(n node) AdditionalImage {
	a := AdditionalImage{Written: n.text("name"), TargetRepo: n.text("targetRepo"), TargetTag: n.text("targetTag"),
		Platforms: n.platforms(), Line: n.line()}
	var err error
	if a.Name, err = ParseRef(a.Written, r.options.Transports...); errors.Is(err, errTagless) {
		p := n.problem("name", err.Error(), "add a tag, such as :latest, or a digest: none is implied")
		p.Err = errors.Join(p.Err, errTagless)
		r.problems.Add(p)
	} else if err != nil && !n.misfit("name") {
		n.wrong("name", err.Error(), "name: registry.example.com/path/image:v1")
	}
	if err == nil || errors.Is(err, errTagless) {
		err = cmp.Or(n.checkRegistry("name", a.Name), err)
	}
	n.checkTarget("targetRepo")
	n.checkTag("targetTag")
	if _, pathErr := (Target{}).Additional(a); err == nil && pathErr != nil && a.TargetRepo == "" {
		n.wrong("name", "the path cannot be the name of a repository", "set targetRepo")
	}
	return a
}
