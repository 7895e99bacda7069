package imageset

import (
	"crypto/md5" //nolint:gosec // a name that oc-mirror defines, no protection
	"encoding/hex"
	"encoding/json"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/yamlout"
)

// The written form of a configuration. The order of an operator's fields is that of oc-mirror, since a hash is made of
// them; files have sorted keys.
type (
	operatorForm struct {
		Packages                    []packageForm  `json:"packages"`
		Catalog                     string         `json:"catalog"`
		TargetCatalog               string         `json:"targetCatalog,omitempty"`
		TargetTag                   string         `json:"targetTag,omitempty"`
		Full                        bool           `json:"full,omitempty"`
		SkipDependencies            bool           `json:"skipDependencies,omitempty"`
		TargetCatalogSourceTemplate string         `json:"targetCatalogSourceTemplate,omitempty"`
		Platforms                   []platformForm `json:"platforms,omitempty"`
	}
	packageForm struct {
		Name           string        `json:"name"`
		Channels       []channelForm `json:"channels,omitempty"`
		DefaultChannel string        `json:"defaultChannel,omitempty"`
		MinVersion     string        `json:"minVersion,omitempty"`
		MaxVersion     string        `json:"maxVersion,omitempty"`
	}
	channelForm struct {
		Name       string `json:"name"`
		MinVersion string `json:"minVersion,omitempty"`
		MaxVersion string `json:"maxVersion,omitempty"`
	}
	platformForm struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	}
	additionalForm struct {
		Name       string         `json:"name"`
		TargetRepo string         `json:"targetRepo,omitempty"`
		TargetTag  string         `json:"targetTag,omitempty"`
		Platforms  []platformForm `json:"platforms,omitempty"`
	}
	blockedForm struct {
		Name string `json:"name"`
	}
	stanzaForm struct {
		Operators        []operatorForm   `json:"operators,omitempty"`
		AdditionalImages []additionalForm `json:"additionalImages,omitempty"`
		BlockedImages    []blockedForm    `json:"blockedImages,omitempty"`
	}
)

func platforms(list []v1.Platform) []platformForm {
	var out []platformForm
	for _, p := range list {
		out = append(out, platformForm{p.OS, p.Architecture})
	}
	return out
}

// form returns the written form of an operator with a catalog of the given digest; without one the catalog is as
// written.
func (o *Operator) form(source digest.Digest) operatorForm {
	f := operatorForm{Catalog: o.Written, TargetCatalog: o.TargetCatalog, TargetTag: o.TargetTag, Full: o.Full,
		SkipDependencies: o.SkipDependencies, TargetCatalogSourceTemplate: o.TargetCatalogSourceTemplate,
		Platforms: platforms(o.Platforms)}
	if source != "" && o.Catalog.InRegistry() {
		f.Catalog = o.Catalog.Repository() + "@" + source.String()
	}
	for _, p := range o.Packages {
		entry := packageForm{Name: p.Name, DefaultChannel: p.DefaultChannel, MinVersion: p.MinVersion,
			MaxVersion: p.MaxVersion}
		for _, c := range p.Channels {
			entry.Channels = append(entry.Channels, channelForm{c.Name, c.MinVersion, c.MaxVersion})
		}
		f.Packages = append(f.Packages, entry)
	}
	return f
}

// FilterHash returns the name that oc-mirror gives to the result of filtering the catalog with the given digest: the
// MD5 of the operator's JSON without what only concerns the destination. It is needed to read that program's workspaces
// and caches, and protects nothing.
func (o Operator) FilterHash(source digest.Digest) string {
	f := o.form(source)
	f.TargetCatalog, f.TargetTag, f.TargetCatalogSourceTemplate = "", "", ""
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and booleans only
	}
	sum := md5.Sum(text) //nolint:gosec // see the import
	return hex.EncodeToString(sum[:])
}

// Pinned returns the text of a configuration of the given kind in which the catalogs are named by digest, so that a
// later run gets the same content. The former tag becomes the tag at the destination. digests returns the digest of an
// operator's catalog, empty to leave it as it is; layouts stay as they are.
func (s *Set) Pinned(kind Kind, digests func(Operator) digest.Digest) []byte {
	var stanza stanzaForm
	for _, o := range s.Operators {
		d := digests(o)
		f := o.form(d)
		if d != "" && o.Catalog.InRegistry() && f.TargetTag == "" {
			f.TargetTag = o.Catalog.Tag
		}
		stanza.Operators = append(stanza.Operators, f)
	}
	for _, a := range s.AdditionalImages {
		stanza.AdditionalImages = append(stanza.AdditionalImages,
			additionalForm{a.Written, a.TargetRepo, a.TargetTag, platforms(a.Platforms)})
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
	text, err := json.Marshal(doc)
	if err == nil {
		text, err = yamlout.AppendYAML(nil, text)
	}
	if err != nil {
		panic(err) // strings, booleans and a number
	}
	return text
}
