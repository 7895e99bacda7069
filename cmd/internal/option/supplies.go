package option

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/supply"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/provenance"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// sbomFile is one value of --sbom-file.
type sbomFile struct {
	format sbom.Format
	path   string
}

// supplies is what [supplyFlags] ask for, for one image.
type supplies struct {
	formats []sbom.Format
	files   []sbomFile
	// name is the repository that documents name the image by where it has no name, and fileName that in files.
	name, fileName string
	provenance     bool
	build          provenance.Build
	program        func() (digest.Digest, error) // the digest of this program
	times          bool
	options        sbom.Options
	examine        inventory.Options
	signing        *supply.Signing
	client         func() *images.Client
	base           string
	locked         bool

	image *build.Image
	// found is what is in the image with the digest of the field top.
	found   *inventory.Inventory
	servers map[string]digest.Digest
	top     digest.Digest
}

// setNames finds the names that documents give the image: in a registry that of its repository, elsewhere the first
// name of -t that has a registry. Files have that of the first registry.
func (s *supplies) setNames(t Target) {
	for _, name := range t.Names {
		if s.name == "" && hasRegistry(name) {
			s.name = supply.Repository(name)
		}
	}
	s.fileName = s.name
	for _, d := range t.Destinations {
		if d.InRegistry() {
			s.fileName = supply.Repository(d.Name)
			return
		}
	}
}

// hasRegistry tells whether a name begins with the host of a registry.
func hasRegistry(name string) bool {
	host, _, ok := strings.Cut(name, "/")
	return ok && (strings.ContainsAny(host, ".:") || host == "localhost")
}

// runSbom returns what attaches the bills of materials.
func (s *supplies) sbom() *supply.SBOM {
	return &supply.SBOM{Formats: s.formats, Options: s.options, Name: s.name, Inventory: s.contents, Signing: s.signing}
}

// Attachments returns what attaches the documents to the image when it is copied.
func (s *supplies) attachments() (out []store.Attachment) {
	if s == nil {
		return nil
	}
	if len(s.formats) > 0 {
		out = append(out, s.sbom())
	}
	if s.provenance {
		out = append(out, &supply.Provenance{Name: s.name, Build: s.built, Signing: s.signing})
	}
	return out
}

// attached says what is attached; empty if nothing is.
func (s *supplies) attached() string {
	var what []string
	if s != nil && len(s.formats) > 0 {
		names := make([]string, len(s.formats))
		for n, f := range s.formats {
			names[n] = string(f)
		}
		what = append(what, "the bill of materials ("+strings.Join(names, ", ")+")")
	}
	if s != nil && s.provenance {
		what = append(what, "the provenance")
	}
	if what == nil {
		return ""
	}
	return "attached " + strings.Join(what, " and ")
}

// read finds out what is in the assembled image, before it is copied. Without a copy only files need it.
func (s *supplies) read(ctx context.Context, image *build.Image, copied bool) error {
	if s == nil {
		return nil
	}
	if s.image = image; !copied && len(s.files) == 0 {
		return nil
	}
	return s.readAgain(ctx)
}

func (s *supplies) readAgain(ctx context.Context) error {
	err := s.image.Examine(ctx, func(survey *images.Survey) (err error) {
		if len(s.formats) > 0 || len(s.files) > 0 {
			s.found, err = inventory.Examine(ctx, survey, s.examine)
			if err == nil {
				s.servers = s.found.Servers()
				err = s.sbom().Check(s.found, s.fileName)
			}
			return err
		}
		s.servers, err = inventory.Servers(ctx, survey, s.examine)
		return err
	})
	if err != nil {
		return fmt.Errorf("what is in the image: %w", err)
	}
	s.top = s.image.Digest
	return nil
}

// contents returns what is in the image with a digest. An image that was rebuilt while it was copied has another one.
func (s *supplies) contents(ctx context.Context, top digest.Digest) (*inventory.Inventory, error) {
	if top != s.top {
		if err := s.readAgain(ctx); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

// writeFiles writes the files of --sbom-file.
func (s *supplies) writeFiles(ctx context.Context) error {
	if s == nil || len(s.files) == 0 {
		return nil
	}
	found, err := s.contents(ctx, s.image.Digest)
	if err != nil {
		return err
	}
	of, ok := found.Of(s.image.Digest, s.fileName)
	if !ok {
		return fmt.Errorf("%w: there is no image %s", images.ErrInvalid, s.image.Digest)
	}
	for _, f := range s.files {
		if err := s.writeFile(f, of); err != nil {
			return fmt.Errorf("--sbom-file: %w", err)
		}
	}
	return nil
}

// writeFile writes one of them.
func (s *supplies) writeFile(f sbomFile, of *sbom.Inventory) (err error) {
	out, err := atomicfs.NewFile(f.path, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	if err := f.format.Write(out, of, s.options); err != nil {
		return err
	}
	return out.Commit()
}

// made returns the attestations that were made.
func (s *supplies) made() []signature.Made {
	if s == nil {
		return nil
	}
	return SortedMade(s.signing.Made())
}

// built returns the build of the image with a digest.
func (s *supplies) built(ctx context.Context, top digest.Digest) (*provenance.Build, error) {
	if top != s.top {
		if err := s.readAgain(ctx); err != nil {
			return nil, err
		}
	}
	b := s.build
	b.Subject, b.Version, b.Go = top, version.Release(), runtime.Version()
	var err error
	if b.Program, err = s.program(); err != nil {
		return nil, fmt.Errorf("the digest of this program: %w", err)
	}
	b.Dependencies = slices.Clone(b.Dependencies)
	for arch, d := range s.servers {
		b.Dependencies = append(b.Dependencies, provenance.Dependency{Name: "server", Digest: d,
			URI: "pkg:generic/bindery-server@" + version.Release() + "?arch=" + arch + "&os=linux"})
	}
	if client := s.client(); client != nil {
		for name, d := range client.Opened() {
			b.Dependencies = append(b.Dependencies, s.dependency(name, d))
		}
	}
	if s.times {
		b.Finished = time.Now()
	}
	return &b, nil
}

// dependency describes an image that was read.
func (s *supplies) dependency(name string, d digest.Digest) provenance.Dependency {
	out := provenance.Dependency{Name: "image:" + portable(name), URI: portable(name), Digest: d}
	switch {
	case name == s.base:
		out.Name = "base"
	case s.locked:
		out.Name = "lock:" + portable(name)
	}
	return out
}
