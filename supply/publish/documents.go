package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/supply"
	"github.com/operator-bindery/bindery/supply/inventory"
	"github.com/operator-bindery/bindery/supply/provenance"
	"github.com/operator-bindery/bindery/supply/sbom"
)

// Documents are what is written of the content of an image and of how it was built: attached to it, and in files.
type Documents struct {
	// SBOMs are the formats of the bills of materials that are attached, and SBOMFiles are [FORMAT=]FILE: a file without
	// a format has the first one of SBOMs that no file before it has.
	SBOMs, SBOMFiles []string
	// Provenance attaches how the image was built, by BuilderID, with ProvenanceTime also when.
	Provenance, ProvenanceTime bool
	BuilderID                  string
	// LegacyAttestations also writes attestations to the .att tag.
	LegacyAttestations bool
	// SBOM and Inventory are how documents are made.
	SBOM      sbom.Options
	Inventory inventory.Options
	// Build describes the build, for its provenance.
	Build Build
}

// Build is what the provenance of an image says of its build.
type Build struct {
	// Command is that of the program, and Parameters returns its parameters.
	Command    string
	Parameters func() (map[string]any, error)
	// Source is the input, and Sources are the names of other files, directories and images that may be read. Whole
	// directories have all their files, others those of a catalog.
	Source  string
	Sources []string
	Whole   bool
	// Base is the name of the base image, and Read returns the images that were read, by their names. Locked ones have
	// their digests from a lock file.
	Base   string
	Read   func() map[string]digest.Digest
	Locked bool
}

// sbomFile is one value of SBOMFiles.
type sbomFile struct {
	format sbom.Format
	path   string
}

// documents are those of one image.
type documents struct {
	Documents
	table   transport.Table
	formats []sbom.Format
	files   []sbomFile
	// name is the repository that documents name the image by where it has no name, and fileName that in files.
	name, fileName string
	build          provenance.Build
	program        func() (digest.Digest, error) // the digest of this program
	signing        *supply.Signing

	image *build.Image
	// found is what is in the image with the digest of the field top.
	found   *inventory.Inventory
	servers map[string]digest.Digest
	top     digest.Digest
}

// prepare checks the fields and reads the sources of the build; nil if no documents are asked for. Destinations that keep
// no attachments are refused. in is the input, in which no file may be.
func (o Documents) prepare(ctx context.Context, t Target, with *supply.Signing, table transport.Table, in string) (*documents, error) {
	d := &documents{Documents: o, table: table, signing: with}
	var err error
	for _, text := range o.SBOMs {
		f, err := sbom.ParseFormat(text)
		if err != nil {
			return nil, fault.Fieldf("invalid {SBOMs} value %.80q, expected (spdx|cyclonedx)", text)
		}
		if !slices.Contains(d.formats, f) {
			d.formats = append(d.formats, f)
		}
	}
	if d.files, err = o.readFiles(d.formats, in); err != nil {
		return nil, err
	}
	attached := len(d.formats) > 0 || o.Provenance
	if !attached && len(d.files) == 0 {
		return nil, nil
	}
	for _, place := range t.Destinations {
		if err := table.CheckAttachments(place); err != nil && attached {
			return nil, &PlaceError{place.String(), err}
		}
	}
	d.setNames(t)
	if o.Provenance {
		err = d.describe(ctx)
	}
	return d, err
}

// readFiles reads SBOMFiles.
func (o Documents) readFiles(formats []sbom.Format, in string) (files []sbomFile, err error) {
	left := slices.Clone(formats)
	for _, text := range o.SBOMFiles {
		f := sbomFile{path: text}
		if name, path, ok := strings.Cut(text, "="); ok {
			if format, err := sbom.ParseFormat(name); err == nil {
				f = sbomFile{format, path}
			}
		}
		if f.format == "" {
			f.format = sbom.SPDX
			if len(left) > 0 {
				f.format = left[0]
			}
		}
		left = slices.DeleteFunc(left, func(used sbom.Format) bool { return used == f.format })
		if f.path == "" {
			return nil, fault.Fieldf("{SBOMFiles} %q names no file", text)
		}
		if err := atomicfs.CheckResult("SBOMFiles", f.path, in); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(o sbomFile) bool { return filepath.Clean(o.path) == filepath.Clean(f.path) }) {
			return nil, fault.Fieldf("{SBOMFiles} %q is given twice", f.path)
		}
		files = append(files, f)
	}
	return files, nil
}

// setNames finds the names that documents give the image: in a registry that of its repository, elsewhere the first
// name that has a registry. Files have that of the first registry.
func (d *documents) setNames(t Target) {
	if at := slices.IndexFunc(t.Names, hasRegistry); at >= 0 {
		d.name = supply.Repository(t.Names[at])
	}
	d.fileName = d.name
	if at := slices.IndexFunc(t.Destinations, transport.Destination.InRegistry); at >= 0 {
		d.fileName = supply.Repository(t.Destinations[at].Name)
	}
}

// describe notes the parameters and the sources of a build before it begins.
func (d *documents) describe(ctx context.Context) (err error) {
	b := &d.build
	b.Builder = d.BuilderID
	if b.Builder != "" && !isURI(b.Builder) {
		return fault.Fieldf("invalid {BuilderID} value %.200q, expected a URI", b.Builder)
	}
	if redact.Text(b.Builder) != b.Builder {
		return fault.Fieldf("{BuilderID} has credentials, and everyone can read it in the provenance")
	}
	if d.ProvenanceTime {
		b.Started = time.Now()
	}
	d.program = programDigest(ctx)
	b.Command = d.Build.Command
	if b.Parameters, err = d.Build.Parameters(); err != nil {
		return err
	}
	if b.Dependencies, err = d.Build.sources(ctx, d.table); err != nil {
		return err
	}
	for _, s := range b.Dependencies {
		if s.Name == sourceName(d.table, d.Build.Source) {
			b.Parameters["source"] = map[string]any{"path": Portable(d.table, d.Build.Source),
				"digest": map[string]string{s.Digest.Algorithm().String(): s.Digest.Encoded()}}
		}
	}
	return nil
}

// programDigest begins to read this program's file, beside the build, and returns what waits for its digest.
func programDigest(ctx context.Context) func() (digest.Digest, error) {
	wait := sync.OnceValues(func() (d digest.Digest, err error) {
		err = guard.Call(func() error {
			path, err := os.Executable()
			if err == nil {
				d, err = provenance.File(ctx, os.DirFS(filepath.Dir(path)), filepath.Base(path))
			}
			return err
		})
		return d, err
	})
	go func() { _, _ = wait() }() // the error is returned to the one who waits
	return wait
}

// isURI tells whether a text has a scheme and no blanks.
func isURI(text string) bool {
	scheme, rest, ok := strings.Cut(text, ":")
	return ok && scheme != "" && rest != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// sbom returns what attaches the bills of materials.
func (d *documents) sbom() *supply.SBOM {
	return &supply.SBOM{Formats: d.formats, Options: d.SBOM, Name: d.name, Inventory: d.contents, Signing: d.signing}
}

// attachments returns what attaches the documents to the image when it is copied.
func (d *documents) attachments() (out []store.Attachment) {
	if d != nil && len(d.formats) > 0 {
		out = append(out, d.sbom())
	}
	if d != nil && d.Provenance {
		out = append(out, &supply.Provenance{Name: d.name, Build: d.built, Signing: d.signing})
	}
	return out
}

// made returns the attestations that were made.
func (d *documents) made() []signature.Made {
	if d == nil {
		return nil
	}
	return signature.Sorted(d.signing.Made())
}

// read finds out what is in the assembled image, before it is copied. Without a copy only files need it.
func (d *documents) read(ctx context.Context, image *build.Image, copied bool) error {
	if d == nil {
		return nil
	}
	if d.image = image; !copied && len(d.files) == 0 {
		return nil
	}
	return d.readAgain(ctx)
}

func (d *documents) readAgain(ctx context.Context) error {
	err := d.image.Examine(ctx, func(survey *images.Survey) (err error) {
		if len(d.formats) > 0 || len(d.files) > 0 {
			d.found, err = inventory.Examine(ctx, survey, d.Inventory)
			if err == nil {
				d.servers = d.found.Servers()
				err = d.sbom().Check(d.found, d.fileName)
			}
			return err
		}
		d.servers, err = inventory.Servers(ctx, survey, d.Inventory)
		return err
	})
	if err != nil {
		return fmt.Errorf("what is in the image: %w", err)
	}
	d.top = d.image.Digest
	return nil
}

// contents returns what is in the image with a digest. An image that was rebuilt while it was copied has another one.
func (d *documents) contents(ctx context.Context, top digest.Digest) (*inventory.Inventory, error) {
	if top != d.top {
		if err := d.readAgain(ctx); err != nil {
			return nil, err
		}
	}
	return d.found, nil
}

// built returns the build of the image with a digest.
func (d *documents) built(ctx context.Context, top digest.Digest) (*provenance.Build, error) {
	if _, err := d.contents(ctx, top); err != nil {
		return nil, err
	}
	b := d.build
	b.Subject, b.Version, b.Go = top, version.Release(), runtime.Version()
	var err error
	if b.Program, err = d.program(); err != nil {
		return nil, fmt.Errorf("the digest of this program: %w", err)
	}
	b.Dependencies = slices.Clone(b.Dependencies)
	for arch, server := range d.servers {
		b.Dependencies = append(b.Dependencies, provenance.Dependency{Name: "server", Digest: server,
			URI: "pkg:generic/bindery-server@" + version.Release() + "?arch=" + arch + "&os=linux"})
	}
	for name, read := range d.Build.Read() {
		b.Dependencies = append(b.Dependencies, d.Build.dependency(d.table, name, read))
	}
	if d.ProvenanceTime {
		b.Finished = time.Now()
	}
	return &b, nil
}

// writeFiles writes the files with bills of materials.
func (d *documents) writeFiles(ctx context.Context) error {
	if d == nil || len(d.files) == 0 {
		return nil
	}
	found, err := d.contents(ctx, d.image.Digest)
	if err != nil {
		return err
	}
	of, ok := found.Of(d.image.Digest, d.fileName)
	if !ok {
		return fmt.Errorf("%w: there is no image %s", images.ErrInvalid, d.image.Digest)
	}
	for _, f := range d.files {
		if err := d.writeFile(f, of); err != nil {
			return fault.InField("SBOMFiles", err)
		}
	}
	return nil
}

func (d *documents) writeFile(f sbomFile, of *sbom.Inventory) (err error) {
	out, err := atomicfs.NewFile(f.path, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	if err := f.format.Write(out, of, d.SBOM); err != nil {
		return err
	}
	return out.Commit()
}
