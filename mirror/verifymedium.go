package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/stock"
	"github.com/operator-bindery/bindery/render"
)

// verifyArchive looks whether an archive is whole. It reads all of it: every blob and manifest has its digest; every
// image has what it refers to; every name stands for what the description of the archive says; and what a run of the
// image set in the archive would copy from it is there, which is what its catalogs name. What the archive says that the
// other side has may be missing.
//
// What a run of the options' image set would copy must be there, too.
//
// The policy, if there is one, is asked about each image under the name of its source.
func verifyArchive(ctx context.Context, o VerifyOptions) (_ *Verification, err error) {
	reader, err := medium.Open(ctx, o.Archive)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	m := &mediumCheck{reader: reader, leftOut: map[digest.Digest]bool{}, broken: map[digest.Digest]error{},
		platforms: map[string][]v1.Platform{}, faults: map[string]*imageFault{}, progress: progress{events: o.Events},
		out: &Verification{Catalogs: []verifiedCatalog{}, Faults: []imageFault{}, DryRun: o.DryRun}}
	if err := m.listLeftOut(ctx); err != nil {
		return nil, err
	}
	m.listCatalogs()
	m.progress.add(func(e *Event) {
		for _, path := range reader.Repositories() {
			e.AllImages += len(reader.Tags(path))
		}
		for _, s := range reader.Segments() {
			e.AllBytes += s.Bytes
		}
	})
	if !o.DryRun {
		if m.broken, err = reader.Check(ctx, 2, m); err != nil {
			return nil, err
		}
		m.checkDescription()
		if err := m.checkRun(ctx, o); err != nil {
			return nil, err
		}
	}
	if err := m.checkStock(ctx, o.DryRun); err != nil {
		return nil, err
	}
	return m.makeResult(), nil
}

// mediumCheck is one run of [verifyArchive].
type mediumCheck struct {
	reader *medium.Reader
	// leftOut is what the other side is to have, and broken what is not what its digest says.
	leftOut map[digest.Digest]bool
	broken  map[digest.Digest]error
	// blamed are the broken blobs and manifests that are reported with an image.
	blamed map[digest.Digest]bool
	// byDigest are images that no tag leads to.
	byDigest []stock.Wanted
	// platforms are the wanted platforms of images, by PATH:TAG; none means all.
	platforms map[string][]v1.Platform
	faults    map[string]*imageFault
	progress  progress
	out       *Verification
}

// addFault notes what is wrong with an image.
func (m *mediumCheck) addFault(image, problem string, neededBy ...string) {
	f := m.faults[image]
	if f == nil {
		f = &imageFault{Image: image}
		m.faults[image] = f
	}
	if !slices.Contains(f.Problems, problem) {
		f.Problems = append(f.Problems, problem)
	}
	for _, by := range neededBy {
		if len(f.NeededBy) < 5 && !slices.Contains(f.NeededBy, by) {
			f.NeededBy = append(f.NeededBy, by)
		}
	}
}

// listLeftOut finds out which blobs the other side is expected to have. An archive of oc-mirror does not list them:
// there they are those that, by the history in the archive, were in an earlier one. Every other blob that is not in the
// archive is missing.
func (m *mediumCheck) listLeftOut(ctx context.Context) error {
	list, err := m.reader.LeftOut(ctx)
	if err != nil {
		return err
	}
	for _, l := range list {
		if m.reader.Contents() != nil || l.Since != nil {
			m.leftOut[l.Digest] = true
		}
	}
	m.out.LeftOut = len(m.leftOut)
	about := m.reader.Contents()
	if about == nil {
		return nil
	}
	for _, i := range about.Images { // images that an inventory has are left out whole
		if i.AtTarget && !m.leftOut[i.Digest] && m.reader.Tag(i.Path, i.Tag) == "" {
			m.out.LeftOut++
		}
	}
	return nil
}

// listCatalogs lists the catalogs that the description names.
func (m *mediumCheck) listCatalogs() {
	about := m.reader.Contents()
	if about == nil {
		return
	}
	for _, c := range about.Catalogs {
		bundles := map[string]bool{}
		for name, channels := range c.Packages {
			for _, channel := range channels {
				for _, bundle := range channel {
					bundles[name+"/"+bundle] = true
				}
			}
		}
		m.out.Catalogs = append(m.out.Catalogs, verifiedCatalog{Name: c.Path + ":" + c.Tag, Digest: c.Digest,
			Packages: len(c.Packages), Bundles: len(bundles)})
	}
}

// checkDescription compares the names of the archive with its description.
func (m *mediumCheck) checkDescription() {
	about := m.reader.Contents()
	if about == nil {
		if m.reader.Form() == medium.OCI {
			m.addFault("bindery-mirror.json", "the archive has no description")
		}
		return
	}
	names := map[string][]digest.Digest{}
	path, untagged := "", []digest.Digest(nil)
	for _, i := range about.Images {
		if i.AtTarget {
			continue
		}
		names[i.Path+":"+i.Tag] = append(names[i.Path+":"+i.Tag], i.Digest)
		if len(i.Attached) == 0 {
			continue
		}
		if i.Path != path {
			path, untagged = i.Path, m.reader.Attached(i.Path)
		}
		for _, name := range i.Attached {
			if _, found := slices.BinarySearch(untagged, digest.Digest(name)); !found && m.reader.Tag(path, name) == "" {
				m.addFault(i.Path+":"+i.Tag, fmt.Sprintf("what is attached to it is not there: %s", name))
			}
		}
	}
	for _, c := range about.Catalogs {
		if c.Digest != "" {
			names[c.Path+":"+c.Tag] = append(names[c.Path+":"+c.Tag], c.Digest)
		}
	}
	for name, digests := range names {
		path, tag, _ := strings.Cut(name, ":")
		is := m.reader.Tag(path, tag)
		switch {
		case is == "":
			m.addFault(name, fmt.Sprintf("there is no such tag, and the description says that it is %s", digests[0]))
		case !slices.Contains(digests, is):
			m.addFault(name, fmt.Sprintf("it is %s, and the description says that it is %s", is, digests[0]))
		}
	}
}

// checkRun looks for what a run of the image set in the archive would copy. The archive of one of several parts has no
// catalogs, and is not enough for a run; that of the catalogs has what the others have not.
func (m *mediumCheck) checkRun(ctx context.Context, o VerifyOptions) (err error) {
	about := m.reader.Contents()
	if about != nil && about.Part != "" {
		return nil
	}
	text, name, err := m.imageSet()
	if err != nil {
		return err
	}
	if text != nil {
		set, err := imageset.Parse(text, name, imageset.Image, imageset.Options{Compat: true})
		if err != nil {
			m.addFault(name, err.Error())
		} else if err := m.checkSet(ctx, o, set, name); err != nil {
			return err
		}
	}
	if o.Set == nil || text != nil && bytes.Equal(text, o.Set.PublicText()) {
		return nil
	}
	return m.checkSet(ctx, o, o.Set, "the image set")
}

// checkSet looks for what a run of an image set would copy.
func (m *mediumCheck) checkSet(ctx context.Context, o VerifyOptions, set *imageset.Set, name string) (err error) {
	with := Options{Mode: FromDisk, Set: set, Releases: o.Releases, Charts: o.Charts}
	for n := range set.Operators {
		set.Operators[n].TargetCatalogSourceTemplate = "" // a file of the machine that wrote the archive, or runs from it
	}
	client := o.Policy
	if client == nil {
		// Images are read from the archive, which no policy of this machine is about.
		if client, err = images.NewClient(images.ClientOptions{NoPolicy: true, AnyPlatform: true}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, client.Close()) }()
	}
	with.Images, with.Render = client, render.Options{Images: client}
	options := with.withDefaults()
	input := newArchive(m.reader, options, noTarget{})
	r := &run{o: options, report: newReport(options), places: places{from: input, input: input, to: noTarget{}}}
	err = r.collect(ctx)
	found := r.found
	defer func() { err = errors.Join(err, found.close()) }()
	var wrong *CollectError
	if err != nil && !errors.As(err, &wrong) {
		return err
	}
	leftOut := 0
	for _, one := range found.releases {
		r := verifiedRelease{Name: one.account.Name(), Digest: one.account.Digest, Components: one.account.Components}
		if m.isLeftOut(one) {
			r.LeftOut = true
			leftOut++
		} else if one.failed != nil {
			r.Error = one.failed.Error()
		}
		m.out.Releases = append(m.out.Releases, r)
	}
	if wrong != nil && wrong.Additional+wrong.Releases > leftOut {
		m.addFault(name, wrong.Error())
	}
	for _, c := range found.charts {
		m.out.Charts = append(m.out.Charts, verifiedChart{c.account.Title(), c.account.Images, c.account.Error})
	}
	if g := found.graph; g != nil {
		if at := onMedium.GraphImage(); m.reader.Tag(at.Path, at.Tag) == "" {
			m.addFault(at.Name(), "it is not in the archive", name)
		}
	}
	for _, c := range slices.Concat(found.catalogs, found.absent) {
		m.addCatalog(c, set == o.Set)
	}
	list, err := r.checkDestinations(ctx)
	if err != nil && !errors.Is(err, errNoImages) {
		m.addFault(name, err.Error())
	}
	for _, i := range list {
		if i.account.Status != Blocked {
			if err := m.checkImage(ctx, input, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLeftOut tells whether a release cannot be read since the archive leaves out of it what the other side, or the
// archive of a part, is to have. Its signature was verified.
func (m *mediumCheck) isLeftOut(one *release) bool {
	if one.image == nil || !errors.Is(one.failed, fs.ErrNotExist) {
		return false
	}
	return errors.Is(one.failed, medium.ErrLeftOut) || m.reader.Contents() == nil && len(m.leftOut) > 0 ||
		m.atTarget(one.image) || m.inPart(one.image)
}

// imageSet returns the image set that the archive was written for, and its name in messages; nil if it has none.
func (m *mediumCheck) imageSet() ([]byte, string, error) {
	if about := m.reader.Contents(); about != nil {
		return []byte(about.ImageSet), "the image set in the archive", nil
	}
	names, err := fs.Glob(m.reader.Files(), "isc_*")
	if err != nil || len(names) == 0 {
		return nil, "", err
	}
	name := slices.Max(names)
	f, err := m.reader.Files().Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, imageset.MaxConfig+1))
	if err == nil && len(text) > imageset.MaxConfig {
		err = fmt.Errorf("%w: more than %d bytes", fault.ErrLimit, imageset.MaxConfig)
	}
	return text, name, err
}

// addCatalog notes what a run would say of a catalog, of a wish if it is of another image set than that of the archive.
func (m *mediumCheck) addCatalog(c *catalog, wish bool) {
	if c.account.Error == "" {
		if at := m.listed(c.onMedium); at != nil {
			at.Missing = c.account.Missing
		} else if m.reader.Contents() == nil || len(c.account.Missing) > 0 {
			c.accountPackages()
			m.out.Catalogs = append(m.out.Catalogs, verifiedCatalog{Name: c.op.Catalog.Name(), Digest: c.digest,
				Packages: len(c.account.Packages), Bundles: len(c.bundles), Missing: c.account.Missing})
		}
		for _, b := range c.bundles {
			if b.bad != nil {
				m.addFault(c.op.Catalog.Name(), b.bad.Error())
			}
		}
		return
	}
	if errors.Is(c.failed, medium.ErrLeftOut) || m.reader.Contents() == nil && len(m.leftOut) > 0 && c.onMedium != "" &&
		errors.Is(c.failed, fs.ErrNotExist) {
		if wish {
			m.out.Catalogs = append(m.out.Catalogs, verifiedCatalog{Name: c.op.Catalog.Name(), Digest: c.digest,
				Missing: []string{"not judged: a part of what the catalog offered is where the other side is to have it"}})
		}
		// The other side should have the part that was left out; other missing parts are found in the catalog's image.
		return
	}
	if at := m.listed(c.onMedium); at != nil {
		at.Error = c.account.Error
		return
	}
	m.out.Catalogs = append(m.out.Catalogs, verifiedCatalog{Name: c.op.Catalog.Name(), Error: c.account.Error})
}

// listed returns the catalog with a name on the medium, if it is listed.
func (m *mediumCheck) listed(name string) *verifiedCatalog {
	for i := range m.out.Catalogs {
		if m.out.Catalogs[i].Name == name {
			return &m.out.Catalogs[i]
		}
	}
	return nil
}

// checkImage looks for an image as a run does that reads it from the archive.
func (m *mediumCheck) checkImage(ctx context.Context, input *archive, i *item) error {
	medium := i.onMedium()
	name := medium.Path + ":" + medium.Tag
	if of, seen := m.platforms[name]; len(i.platforms) == 0 || seen && len(of) == 0 {
		m.platforms[name] = nil // all
	} else {
		m.platforms[name] = append(of, i.platforms...)
	}
	at, err := input.open(ctx, i)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist) && (m.atTarget(i) || m.inPart(i)):
		return nil
	case err != nil:
		m.addFault(name, m.reason(i, err), i.account.Bundles...)
		return nil
	}
	switch {
	case i.source.Digest != "" && at.top.Digest != i.source.Digest:
		m.addFault(name, fmt.Sprintf("it is %s, and is to be %s", at.top.Digest, i.source.Digest), i.account.Bundles...)
	case m.reader.Tag(medium.Path, medium.Tag) != at.top.Digest:
		m.byDigest = append(m.byDigest, stock.Wanted{Repository: medium.Path, Name: at.top.Digest.String(),
			Platforms: i.platforms})
	}
	return at.close()
}

// reason is why an image is not there: what the description says, if it does.
func (m *mediumCheck) reason(i *item, err error) string {
	if why := m.lacking(i); why != "" {
		return "it was not there when the archive was written: " + why
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "it is not in the archive"
	}
	return err.Error()
}

// lacking is what the description says about an image that the archive lacks; empty if it does not.
func (m *mediumCheck) lacking(i *item) string {
	if about := m.reader.Contents(); about != nil {
		for _, l := range about.Lacking {
			if l.Name == i.source.String() {
				return l.Reason
			}
		}
	}
	return ""
}

// inPart tells whether the archive of a part is to have an image that this one has not: all that it does not describe.
func (m *mediumCheck) inPart(i *item) bool {
	about, at := m.reader.Contents(), i.onMedium()
	return about != nil && about.Parts && m.lacking(i) == "" && !slices.ContainsFunc(about.Images,
		func(in medium.Image) bool { return in.Path == at.Path && in.Tag == at.Tag })
}

// atTarget tells whether the other side is to have an image that the archive has not.
func (m *mediumCheck) atTarget(i *item) bool {
	if m.leftOut[i.source.Digest] {
		return true
	}
	about, at := m.reader.Contents(), i.onMedium()
	return about != nil && slices.ContainsFunc(about.Images, func(in medium.Image) bool {
		return in.AtTarget && in.Path == at.Path && in.Tag == at.Tag
	})
}

// checkStock looks whether every image of the archive has what it refers to, and every attachment.
func (m *mediumCheck) checkStock(ctx context.Context, sizes bool) (err error) {
	m.blamed = map[digest.Digest]bool{}
	open := func(name string) (store.Reader, error) {
		return &storedRepository{m.reader.Repository(name), m}, nil
	}
	tagged := func(yield func(stock.Wanted) bool) {
		for _, path := range m.reader.Repositories() {
			tags := m.reader.Tags(path)
			for _, tag := range slices.Sorted(maps.Keys(tags)) {
				if !yield(stock.Wanted{Repository: path, Name: tag, Platforms: m.platforms[path+":"+tag]}) {
					return
				}
			}
		}
	}
	m.out.Summary, err = stock.Check(ctx, open, tagged, stock.CheckOptions{Jobs: 2, Sizes: sizes,
		Done: func(f stock.Finding) {
			m.progress.add(func(e *Event) { e.Images++ })
			m.noteFinding(f)
		}})
	if err != nil || sizes {
		return err
	}
	if err := m.checkTagged(ctx); err != nil {
		return err
	}
	rest := func(yield func(stock.Wanted) bool) {
		for _, w := range m.byDigest {
			if !yield(w) {
				return
			}
		}
		for _, path := range m.reader.Repositories() {
			tagged := slices.Collect(maps.Values(m.reader.Tags(path)))
			for _, d := range m.reader.Attached(path) {
				// What oc-mirror has links for may be in earlier archives.
				known := m.reader.Contents() != nil || m.reader.Has(d)
				if known && !slices.Contains(tagged, d) && !yield(stock.Wanted{Repository: path, Name: d.String()}) {
					return
				}
			}
		}
	}
	_, err = stock.Check(ctx, open, rest, stock.CheckOptions{Jobs: 2, Done: m.noteFinding})
	return err
}

// checkTagged looks whether what has the tag of signatures is signatures, and so on.
func (m *mediumCheck) checkTagged(ctx context.Context) error {
	for _, path := range m.reader.Repositories() {
		at := m.reader.Repository(path)
		for tag := range m.reader.Tags(path) {
			if !referrers.IsTag(tag) {
				continue
			}
			text, _, err := at.Manifest(ctx, tag)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil { // checkStock reports manifests that cannot be read
				err = referrers.CheckTagged(tag, text)
				if err != nil {
					m.addFault(path+":"+tag, err.Error())
				}
			}
		}
	}
	return nil
}

// noteFinding notes what is wrong with an image.
func (m *mediumCheck) noteFinding(f stock.Finding) {
	for _, p := range f.Problems {
		d := p.Digest
		if d == "" {
			d = m.reader.Tag(f.Repository, f.Name)
		}
		if m.broken[d] != nil {
			m.blamed[d] = true
		}
		if p.Kind != stock.AbsentManifest || !m.leftOut[d] {
			m.addFault(nameOf(f.Wanted), p.Error())
		}
	}
}

// makeResult returns what was found.
func (m *mediumCheck) makeResult() *Verification {
	v := m.out
	for d, err := range m.broken {
		if !m.blamed[d] {
			m.addFault(d.String(), err.Error())
		}
	}
	for _, f := range m.faults {
		v.Faults = append(v.Faults, *f)
	}
	v.Repositories = ByRepository(v.Bytes)
	v.Wrong, v.Problems = len(v.Faults), 0
	for _, f := range v.Faults {
		v.Problems += len(f.Problems)
	}
	slices.SortFunc(v.Faults, func(a, b imageFault) int { return strings.Compare(a.Image, b.Image) })
	return v
}

// Write counts what is read of blobs.
func (m *mediumCheck) Write(p []byte) (int, error) {
	m.progress.add(func(e *Event) { e.Bytes += int64(len(p)) })
	return len(p), nil
}

// storedRepository is a repository on a medium all of whose blobs were read. What the medium leaves out counts as
// there.
type storedRepository struct {
	store.Reader
	m *mediumCheck
}

func (s *storedRepository) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	if !s.m.reader.Has(d.Digest) {
		return s.m.leftOut[d.Digest], nil
	}
	if err := s.m.broken[d.Digest]; err != nil {
		return false, err
	}
	r, err := s.Blob(ctx, d, 0) // it compares the size
	if err != nil {
		return false, err
	}
	return true, r.Close()
}

// noTarget is a target with nothing, to which nothing is written.
type noTarget struct{}

func (noTarget) repository(imageset.Ref) (store.Writer, error) { return nothing{}, nil }

// nothing is a repository of it.
type nothing struct{ store.Writer }

func (nothing) Head(context.Context, string) (v1.Descriptor, error) {
	return v1.Descriptor{}, fs.ErrNotExist
}

func (nothing) Manifest(context.Context, string) ([]byte, string, error) {
	return nil, "", fs.ErrNotExist
}

func (nothing) Can() store.Abilities { return store.Abilities{} }

func (nothing) Blob(context.Context, v1.Descriptor, int64) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}
