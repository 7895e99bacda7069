package publish

import (
	"encoding/json"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/layers"
)

// Files are those about an image that is written: its digest, its ID (the digest of its configuration), its names with
// digest, one per line, and [Metadata]. An empty name is no file. "-" as MetadataFile is left to the caller.
type Files struct{ DigestFile, IIDFile, ImageRefs, MetadataFile string }

// names are the files by their fields.
func (o Files) names() [][2]string {
	files := [][2]string{{"DigestFile", o.DigestFile}, {"IIDFile", o.IIDFile}, {"ImageRefs", o.ImageRefs}}
	if o.MetadataFile != "-" {
		files = append(files, [2]string{"MetadataFile", o.MetadataFile})
	}
	return files
}

// Check refuses files that cannot be written, or that are in an input, before the image is built.
func (o Files) Check(inputs ...string) error {
	for _, f := range o.names() {
		if err := atomicfs.CheckResult(f[0], f[1], inputs...); err != nil {
			return err
		}
	}
	return nil
}

func (o Files) write(r *Result) error {
	id := r.Image.Digest
	if len(r.Image.Platforms) == 1 {
		id = r.Image.Platforms[0].Config
	}
	account, err := r.Account()
	if err != nil {
		return err
	}
	texts := []string{r.Image.Digest.String(), id.String(), strings.Join(r.References, "\n") + "\n", string(account)}
	for i, f := range o.names() {
		if f[1] == "" {
			continue
		}
		if err := atomicfs.WriteFile(f[1], []byte(texts[i]), 0o666); err != nil {
			return fault.InField(f[0], err)
		}
	}
	return nil
}

// Result is an image that was written.
type Result struct {
	Image *build.Image
	// Written is what was written to each destination, Signatures are the signatures and the attestations that were made.
	Written    []images.Result
	Signatures []signature.Made
	// SBOMs are the formats of the bills of materials that were attached; Provenance tells whether it was.
	SBOMs      []string
	Provenance bool
	// References are the names of the image with its digest, or the digest alone.
	References []string

	compression layers.Compression
}

// Pushed tells whether the image was written to a registry.
func (r *Result) Pushed() bool {
	for _, w := range r.Written {
		if w.Traffic != nil {
			return true
		}
	}
	return false
}

// References returns the image's names with its digest, or the digest alone if it has none.
func References(names []string, image *build.Image, written []images.Result) []string {
	d := image.Digest
	var refs []string
	for _, name := range names {
		repository, _ := splitName(name)
		refs = append(refs, repository+"@"+d.String())
	}
	for _, r := range written {
		// Only registries can find an image by digest; an image without a name is reported by its digest alone.
		if len(names) == 0 && strings.Contains(r.Reference, "@") {
			refs = append(refs, r.Reference)
		}
	}
	if len(refs) == 0 {
		refs = []string{d.String()}
	}
	return refs
}

// Account returns the text of [Metadata].
func (r *Result) Account() ([]byte, error) {
	text, err := json.MarshalIndent(r.metadata(), "", "  ")
	return append(text, '\n'), err
}
