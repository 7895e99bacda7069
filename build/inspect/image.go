package inspect

import (
	"archive/tar"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// images verifies each image as a whole after all layers were read.
func (e *examiner) images(ctx context.Context) error {
	done := map[string]bool{}
	for n, i := range e.s.Images {
		c := imageCheck{examiner: e, image: i, of: e.of[n], platform: platformName(i.Platform)}
		c.kind, _ = kindOf(i.Config.Config.Labels)
		if slices.ContainsFunc(c.of, func(f *facts) bool { return f.broken }) {
			continue // without one layer its files are unknown
		}
		c.checkDeclared()
		c.index()
		c.compareWithEarlier(e.s.Images[:n])
		v := newView(c.of)
		c.modes(v)
		c.checkStart(v)
		c.server(v)
		c.checkFiltered(v)
		switch {
		case c.kind == Catalog && c.ours():
			c.checkLayered(v)
			if err := c.caches(ctx, v); err != nil {
				return err
			}
		default:
			// Images of other tools may be laid out in any way: their merged file system is examined, once for all
			// platforms with the same layers.
			key := fmt.Sprint(i.Config.RootFS.DiffIDs, c.kind)
			if done[key] {
				continue
			}
			done[key] = true
			if err := c.examineWhole(ctx, v); err != nil {
				return err
			}
		}
	}
	return nil
}

type imageCheck struct {
	*examiner
	image    images.SurveyedImage
	of       []*facts
	platform string
	kind     Kind
}

func (c *imageCheck) report(about subject, file, format string, args ...any) {
	c.examiner.report(difference{About: about, Platform: c.platform, Image: c.image.Digest, File: file,
		Message: fmt.Sprintf(format, args...)})
}

// ours reports whether bindery built the package layers.
func (c *imageCheck) ours() bool {
	return slices.ContainsFunc(c.of, func(f *facts) bool { return f.declared.kind == string(build.LayerPackages) })
}

// checkDeclared compares the labels with the claims about the layers.
func (c *imageCheck) checkDeclared() {
	labels := c.image.Config.Config.Labels
	for _, want := range []struct {
		kind         build.LayerKind
		label, value string
	}{{build.LayerPackages, build.ConfigsLabel, "/" + configsDir},
		{build.LayerDatabase, build.DatabaseLabel, "/database/index.db"}} {
		has := slices.ContainsFunc(c.of, func(f *facts) bool { return f.declared.kind == string(want.kind) })
		switch got, ok := labels[want.label]; {
		case has && !ok:
			c.report(aboutLabel, "", "the label %s is missing: clients cannot find %s", want.label, want.value)
		case has && got != want.value:
			c.report(aboutLabel, "", "the label %s is %.200q instead of %q", want.label, got, want.value)
		}
	}
	if labels[build.ConfigsLabel] != "" && labels[build.DatabaseLabel] != "" {
		c.report(aboutLabel, "",
			"it has the labels of a catalog and of a database: clients differ in which they prefer")
	}
	if k := c.image.Config.History; len(k) > 0 && historyOf(c.image.Image) == nil {
		c.report(aboutConfig, "", "the number of layers in the history differs from that of the manifest")
	}
	for _, f := range c.of {
		if f.declared.key != "" && f.declared.key.Validate() != nil {
			c.examiner.report(difference{About: aboutAnnotation, Layer: f.digest,
				Message: fmt.Sprintf("the key %.100q is not a digest", string(f.declared.key))})
		}
	}
}

// index compares the image with its entry in the index.
func (c *imageCheck) index() {
	p, config := c.image.Platform, c.image.Config.Platform
	if !platform.Matches(p, config) {
		c.report(aboutIndex, "", "the platform in the index is %s, and in the configuration %s", c.platform,
			platformName(config))
	}
	dense := c.image.Entry.Annotations[build.AnnotationZstd] == "true"
	for n, l := range c.image.Layers {
		if compressed := compressionOf(l.MediaType); dense && compressed != "zstd" && c.of[n].declared.ours() {
			c.report(aboutIndex, "", "the index lists it as the zstd image, but layer %s has %s", l.Digest, compressed)
			break
		}
	}
}

// compareWithEarlier compares the image with those before it in the index: two images of one platform must have the
// same layers, and all images the same catalog.
func (c *imageCheck) compareWithEarlier(before []images.SurveyedImage) {
	for n, other := range before {
		same := platformName(other.Platform) == c.platform
		switch {
		case same && !slices.Equal(other.Config.RootFS.DiffIDs, c.image.Config.RootFS.DiffIDs):
			c.report(aboutIndex, "", "its content differs from that of the other image for %s, %s", c.platform,
				other.Digest)
		case !same && c.ours() && !slices.Equal(catalogOf(c.of, c.image), catalogOf(c.examiner.of[n], other)):
			c.report(aboutIndex, "", "its catalog differs from that of the image for %s", platformName(other.Platform))
		default:
			continue
		}
		return
	}
}

// catalogOf returns the diffIDs of the package layers.
func catalogOf(of []*facts, i images.SurveyedImage) []digest.Digest {
	var out []digest.Digest
	for n, f := range of {
		if f.declared.kind == string(build.LayerPackages) {
			out = append(out, i.Config.RootFS.DiffIDs[n])
		}
	}
	return out
}

// modes checks that catalogs and caches are readable by every user.
func (c *imageCheck) modes(v *view) {
	dirs := []string{clean(c.image.Config.Config.Labels[build.ConfigsLabel]),
		clean(c.image.Config.Config.Labels[build.DatabaseLabel])}
	for _, dir := range append(dirs, cacheDirs(c.image.Config.Config)...) {
		if dir == "" {
			continue
		}
		v.walk(dir, func(name string, n *vnode) {
			switch {
			case n.layer < 0:
			case n.e.kind == tar.TypeReg && n.e.mode&0o444 != 0o444, n.e.kind == tar.TypeDir && n.e.mode&0o555 != 0o555:
				c.report(aboutMode, name, "mode %04o: not every user can read it", n.e.mode)
			}
		})
	}
}

// checkStart checks that the program which the image starts exists and is executable by every user.
func (c *imageCheck) checkStart(v *view) {
	if c.kind != Catalog && c.kind != Database {
		return
	}
	program := entrypoint(c.image.Config.Config)
	switch n := v.find(program); {
	case program == "":
	case n == nil:
		c.addNote("%s: the image has no server /%s and needs an external one", c.platform, program)
	case n.e.kind == tar.TypeReg && n.e.mode&0o111 != 0o111:
		c.report(aboutMode, program, "mode %04o: not every user can execute it", n.e.mode)
	}
}

// server checks that the files of the topmost server layer are visible in the image. Server layers below it belong to
// the base and may be hidden.
func (c *imageCheck) server(v *view) {
	for n, f := range slices.Backward(c.of) {
		if f.declared.kind != string(build.LayerServer) {
			continue
		}
		for _, e := range f.entries {
			if !serverFiles[e.name] {
				continue
			}
			if at := v.find(e.name); at == nil || at.layer != n {
				c.report(aboutServer, e.name, "it is in layer %s, but hidden in the image", f.digest)
			}
		}
		return
	}
}

// checkFiltered checks that catalogd sees the same catalog as a container engine.
func (c *imageCheck) checkFiltered(v *view) {
	dir := clean(c.image.Config.Config.Labels[build.ConfigsLabel])
	if c.kind != Catalog || dir == "" {
		return
	}
	compareViews(c.of, v, dir, func(name, message string) { c.report(aboutCatalog, name, "%s", message) })
}

// checkLayered checks that the visible catalog consists of exactly the files of the package layers.
func (c *imageCheck) checkLayered(v *view) {
	ofPackages := func(n int) bool { return c.of[n].declared.kind == string(build.LayerPackages) }
	ofCache := func(n int) bool { return c.of[n].declared.kind == string(build.LayerCache) }
	dirs := []string{configsDir, nativeDir, opmcache.Dir}
	for _, dir := range dirs {
		v.walk(dir, func(name string, n *vnode) {
			if n.e.kind != tar.TypeDir && !ofPackages(n.layer) && !(dir == opmcache.Dir && ofCache(n.layer)) {
				c.report(aboutCatalog, name, "it comes from layer %s, which is not a package layer",
					c.of[n.layer].digest)
			}
		})
	}
	in := map[string]digest.Digest{}
	for n, f := range c.of {
		if !ofPackages(n) && !ofCache(n) {
			continue
		}
		for _, e := range f.entries {
			if e.kind == tar.TypeReg && slices.ContainsFunc(dirs,
				func(dir string) bool { return strings.HasPrefix(e.name, dir+"/") }) {
				if at := v.find(e.name); at == nil || at.layer != n {
					c.report(aboutCatalog, e.name, "it is in layer %s, but hidden in the image", f.digest)
				}
			}
		}
		for _, pkg := range f.packages {
			if other, twice := in[pkg]; twice {
				c.report(aboutCatalog, "", "the package %.200q is in the layers %s and %s", pkg, other, f.digest)
			}
			in[pkg] = f.digest
		}
	}
}

// caches lists the caches and verifies those of opm. The native cache was compared layer by layer.
func (c *imageCheck) caches(ctx context.Context, v *view) error {
	for _, dir := range c.cachePlaces(v) {
		k := Cache{Path: "/" + dir, Format: v.cacheFormat(dir), State: CacheUnchecked}
		switch {
		case k.Format == "":
			k.Format, k.State = UnknownFormat, CacheMissing
			if v.find(configsDir) != nil && len(v.find(configsDir).children) == 0 {
				break // an empty catalog has no cache
			}
			c.report(aboutCache, dir, "the image declares a cache in /%s, which is missing", dir)
		case k.Format == NativeCache && dir == nativeDir:
			k.State = CacheValid
			if len(v.find(dir).children) < len(packagesIn(c.of)) {
				c.report(aboutCache, dir, "the cache has fewer files than the catalog has packages")
			}
			if c.differsIn(aboutCache) {
				k.State, k.Why = CacheInvalid, "see the differences"
			}
		case k.Format == JSONCache || k.Format == PogrebCache:
			if err := c.opmCache(ctx, v, dir, &k); err != nil {
				return err
			}
		}
		c.addCache(k)
	}
	return nil
}

func packagesIn(of []*facts) []string {
	var out []string
	for _, f := range of {
		out = append(out, f.packages...)
	}
	return out
}

// cachePlaces returns the directories to look for caches in: those that the image's command line names and the default
// ones that contain a cache.
func (c *imageCheck) cachePlaces(v *view) []string {
	places := cacheDirs(c.image.Config.Config)
	for _, dir := range []string{nativeDir, "tmp/cache"} {
		listed := dir == opmcache.Dir && slices.ContainsFunc(c.of,
			func(f *facts) bool { return f.declared.kind == string(build.LayerCache) })
		if f := v.cacheFormat(dir); (listed || f != "" && f != UnknownFormat) && !slices.Contains(places, dir) {
			places = append(places, dir)
		}
	}
	return places
}

// differsIn reports whether a difference about the subject was found.
func (e *examiner) differsIn(about subject) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.found, func(d difference) bool { return d.About == about })
}

// addCache adds a cache to the report. Images of several platforms have the same cache; an invalid state replaces a
// valid one.
func (e *examiner) addCache(k Cache) {
	for n, old := range e.r.Caches {
		if old.Path == k.Path {
			if old.State == CacheNamed || old.State == CacheValid || old.State == CacheUnchecked {
				e.r.Caches[n] = k
			}
			return
		}
	}
	e.r.Caches = append(e.r.Caches, k)
}
