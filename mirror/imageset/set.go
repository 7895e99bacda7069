package imageset

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/yamlout"
)

// Kind is the kind of a configuration.
type Kind string

// The kinds.
const (
	Image  Kind = "ImageSetConfiguration"
	Delete Kind = "DeleteImageSetConfiguration"
)

// stanza returns the field that has the images.
func (k Kind) stanza() string {
	if k == Delete {
		return "delete"
	}
	return "mirror"
}

const (
	// APIVersion is the version of configurations that is read and written.
	APIVersion = "mirror.openshift.io/v2alpha1"
	// MaxConfig is the largest configuration file in bytes.
	MaxConfig = 4 << 20
	// Docker and OCI are the transports of references that every image set can have.
	Docker, OCI = "docker", "oci"
)

// Set is what a configuration asks for. It must not be changed.
type Set struct {
	Kind Kind
	// APIVersion is as given; it may be empty.
	APIVersion string
	// ArchiveSize is the size of an archive's segments in GiB, as given; 0 means 500, see [Set.SegmentSize].
	ArchiveSize      int64
	Operators        []Operator
	AdditionalImages []AdditionalImage
	BlockedImages    []Blocked
	// Platform are the releases.
	Platform Platform
	// Helm are the charts.
	Helm Helm
	// Text is the file as it was read.
	Text []byte
	// Warnings are remarks about what was accepted.
	Warnings []Problem
}

// SegmentSize returns the size of an archive's segments in GiB, where 500 is the default.
func (s *Set) SegmentSize() int64 {
	if s.ArchiveSize <= 0 {
		return 500
	}
	return s.ArchiveSize
}

// stanzaForm is what stands below mirror or delete, as it is written.
type stanzaForm struct {
	Platform         *platformStanza  `json:"platform,omitempty"`
	Helm             *helmForm        `json:"helm,omitempty"`
	Operators        []operatorForm   `json:"operators,omitempty"`
	AdditionalImages []additionalForm `json:"additionalImages,omitempty"`
	BlockedImages    []blockedForm    `json:"blockedImages,omitempty"`
}

// Pinned returns the text of a configuration of the given kind in which the catalogs are named by digest, so that a
// later run gets the same content. The former tag becomes the tag at the destination. digests returns the digest of an
// operator's catalog, empty to leave it as it is; layouts stay as they are. releases has the versions that channels of
// releases are pinned to, by their names; other channels stay as they are. charts, unless nil, returns the version that a chart
// of a repository is pinned to, empty to leave it as it is.
func (s *Set) Pinned(kind Kind, digests func(Operator) digest.Digest, releases map[string]string,
	charts func(*ChartRepository, *Chart) string) []byte {
	stanza := stanzaForm{Platform: s.Platform.form(releases), Helm: s.Helm.form(charts)}
	for _, o := range s.Operators {
		d := digests(o)
		f := o.form(d)
		if d != "" && o.Catalog.InRegistry() && f.TargetTag == "" {
			f.TargetTag = o.Catalog.Tag
		}
		stanza.Operators = append(stanza.Operators, f)
	}
	doc := map[string]any{"apiVersion": APIVersion, "kind": kind}
	if kind == Image {
		for _, b := range s.BlockedImages {
			stanza.BlockedImages = append(stanza.BlockedImages, blockedForm{b.Name})
		}
		if s.ArchiveSize != 0 {
			doc["archiveSize"] = s.ArchiveSize
		}
	}
	doc[kind.stanza()] = stanza
	text := appendYAML(nil, doc)
	if len(s.AdditionalImages) == 0 {
		return text
	}
	// The images come first in the stanza. Very many are written in parts, as the trees of YAML take far more memory than
	// the text.
	key := "\n" + kind.stanza() + ":"
	before, after, _ := bytes.Cut(text, []byte(key))
	out := make([]byte, 0, len(text)+len(s.Text)*9/8) // it is as long as the text that was read, nearly
	out = append(append(out, before...), key+"\n  additionalImages:\n"...)
	for part := range slices.Chunk(s.AdditionalImages, 256) {
		var forms []additionalForm
		for _, a := range part {
			forms = append(forms, a.form())
		}
		for line := range bytes.Lines(appendYAML(nil, forms)) {
			out = append(append(out, "  "...), line...)
		}
	}
	return append(out, bytes.TrimPrefix(bytes.TrimPrefix(after, []byte(" {}")), []byte("\n"))...)
}

// appendYAML appends the YAML of strings, booleans and numbers.
func appendYAML(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err == nil {
		dst, err = yamlout.AppendYAML(dst, text)
	}
	if err != nil {
		panic(err)
	}
	return dst
}

// readImages reads what stands below mirror or delete.
func (r *reader) readImages(n node) {
	if stanza, ok := n.object("platform"); ok {
		r.set.Platform = r.readPlatform(stanza)
	}
	if stanza, ok := n.object("helm"); ok {
		r.set.Helm = r.readHelm(stanza)
	}
	if !hollow(n.fields["samples"]) {
		r.warn(n.at.Key("samples"), n.field("samples"), "is not mirrored by this program", "remove it")
	}
	unique := map[string]int{}
	for _, item := range n.objects("operators") {
		o := r.readOperator(item)
		r.set.Operators = append(r.set.Operators, o)
		if o.Catalog.IsZero() {
			continue
		}
		name := o.uniqueName()
		if line, twice := unique[name]; twice {
			item.wrong("catalog",
				"duplicate: catalog "+fault.Quote(o.Written)+" has the same name at the destination as "+
					"the one in "+lineName(line), "set targetCatalog or targetTag of one, or join their packages")
			continue
		}
		unique[name] = o.Line
	}
	for _, item := range n.objects("additionalImages") {
		r.set.AdditionalImages = append(r.set.AdditionalImages, r.readAdditional(item))
	}
	for _, item := range n.objects("blockedImages") {
		if b, ok := r.readBlocked(item); ok {
			r.set.BlockedImages = append(r.set.BlockedImages, b)
		}
	}
}
