package mirror

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
	"github.com/operator-bindery/bindery/mirror/resources"
	"github.com/operator-bindery/bindery/mirror/stock"
	"github.com/operator-bindery/bindery/render"
)

// Mode is the direction of a run.
type Mode string

// The modes of a run.
const (
	ToMirror Mode = "mirrorToMirror" // from registries to a registry
	ToDisk   Mode = "mirrorToDisk"   // from registries to a medium
	FromDisk Mode = "diskToMirror"   // from a medium to a registry
)

// published is what a run does with a catalog that is complete, as messages say it.
func (m Mode) published() string {
	if m == ToDisk {
		return "packed"
	}
	return "published"
}

// OnMissing says what happens to a catalog that names images which are not available.
type OnMissing string

// What happens to catalogs that name missing images.
const (
	SkipBundle  OnMissing = "skip-bundle" // the bundles that need them are taken out of the catalog
	FailMissing OnMissing = "fail"        // the catalog is not published
)

// Options configure [Options.Run]. Set, Workspace, Images and, but for [ToDisk], Target and Remote are required; [ToDisk] and
// [FromDisk] also need Archive.
type Options struct {
	Mode Mode
	// Releases are how releases are found and verified.
	Releases ReleaseOptions
	// Charts are how charts are got and rendered.
	Charts ChartOptions
	// Set is the image set, and Config the name of its file.
	Set    *imageset.Set
	Config string
	// TrustedRoot is the text of a trusted root of Sigstore, which an archive gets.
	TrustedRoot []byte
	// Target is the registry, with the path below which everything goes.
	Target imageset.Target
	// Archive is the directory of the medium.
	Archive string
	// Workspace has what a run leaves for the next one, and the files for clusters.
	Workspace *Workspace

	// Images reads the images of the set. Every image is read once, so its cache should only keep manifests, which are
	// read twice.
	Images *images.Client
	// Remote writes to the target.
	Remote *registries.Client
	// Spec is how catalogs are rebuilt, Render how they are read; its client reads catalogs.
	Spec   indeximage.Spec
	Render render.Options
	// CatalogBase is what a rebuilt catalog stands on.
	CatalogBase Base
	// Replace are the catalogs that are read in place of others, by the reference in the image set.
	Replace map[string]string

	Filter filter.Options
	// With are the attachments that are copied.
	With referrers.Kinds
	// Sign are written beside each rebuilt catalog.
	Sign []store.Attachment
	// OnMissing is SkipBundle if empty; but PublishOnly then publishes no catalog of which sources have what the target
	// lacks, as the run of a shard may not have ended.
	OnMissing OnMissing
	// AllCatalogs ends the run, as oc-mirror does, if a catalog is not there; otherwise the others are mirrored.
	AllCatalogs bool
	// PruneBlocked takes bundles that name blocked images out of their catalogs.
	PruneBlocked bool
	// Sparse is what happens to an index of which only some platforms are copied.
	Sparse store.Sparse
	// ParallelImages is how many images are copied at once, and ParallelLayers how many blobs of each; four and five if zero.
	// To a registry as many images are begun as keep that many blobs going, unless ParallelImages is 1.
	ParallelImages, ParallelLayers int
	// Timeout, unless zero, is the time for one image with its retries.
	Timeout time.Duration
	// Recheck looks for new attachments of images that are at the destination already.
	Recheck bool
	// Shard, unless zero, is the part of the images that this run copies; catalogs are then left to [Publish].
	Shard Shard
	// PublishOnly copies no images: it looks for them at the target, and publishes the catalogs. It comes after the
	// runs of all shards. With [ToDisk] it looks for them in the archives of the shards, in the directories of the
	// directory Parts, and writes an archive of the catalogs alone.
	PublishOnly bool
	Parts       string

	// Medium is how a medium is written: its form, the size of segments.
	Medium medium.Options
	// Against is what the target has, for a medium that carries only what it lacks; nil is all but what earlier media
	// carried, see Since.
	Against *stock.Inventory
	// AgainstDigest is that of the inventory's file.
	AgainstDigest digest.Digest
	// Since, unless zero, leaves out what media before this time carried and nothing else; All leaves out nothing.
	Since time.Time
	All   bool

	// DryRun copies nothing. ManifestLists adds the images of indexes to the mapping.
	DryRun, ManifestLists bool
	// Resources are how the files for clusters are written.
	Resources resources.Options
	// Compat gives the forms of oc-mirror where this program's own differ.
	Compat bool
	// Now is the time of the run.
	Now time.Time
	// Events, unless nil, receives the progress, from one goroutine at a time.
	Events func(Event)
	Log    *slog.Logger
}

// Check returns an error that names the fields, of the class [fault.Usage], for options with a value that they cannot have.
// Zero values, which a run replaces, are refused too, but for OnMissing with PublishOnly.
func (o *Options) Check() error {
	for _, e := range []struct {
		field, value string
		values       []string
	}{
		{"OnMissing", string(o.OnMissing), []string{string(SkipBundle), string(FailMissing)}},
		{"CatalogBase", string(o.CatalogBase), []string{string(KeepBase), string(ReplaceBase)}},
		{"Sparse", string(o.Sparse), []string{string(store.SparseKeep), string(store.SparseRefuse), string(store.SparseTrim)}},
		{"Form", string(o.Medium.Form), []string{string(medium.OCI), string(medium.OCMirror)}},
	} {
		waits := o.PublishOnly && e.value == "" && e.field == "OnMissing"
		if !waits && !slices.Contains(e.values, e.value) {
			return fault.Fieldf("invalid {"+e.field+"} value %q, expected (%s)", e.value, strings.Join(e.values, "|"))
		}
	}
	switch divided := o.Mode == ToDisk && o.isPart(); {
	case min(o.ParallelImages, o.ParallelLayers) < 1, max(o.ParallelImages, o.ParallelLayers) > 64:
		return fault.Fieldf("{ParallelImages} and {ParallelLayers} are numbers from 1 to 64")
	case divided && o.Medium.Form == medium.OCMirror:
		return fault.Fieldf("oc-mirror reads no archives of several runs: {Shard} is for {Form} oci")
	case divided && !o.Since.IsZero():
		return fault.Fieldf("archives of shards carry all but what {Against} names: {Since} is for those of whole runs")
	case o.Against != nil && (o.All || !o.Since.IsZero()):
		return fault.Fieldf("{Against} excludes {Since} and {All}")
	}
	return o.Target.Check()
}

// withDefaults returns the options with what is used where they are zero.
func (o Options) withDefaults() *Options {
	o.ParallelImages, o.ParallelLayers = cmp.Or(o.ParallelImages, 4), cmp.Or(o.ParallelLayers, 5)
	o.CatalogBase, o.Sparse, o.Medium.Form = cmp.Or(o.CatalogBase, KeepBase), cmp.Or(o.Sparse, store.SparseKeep), cmp.Or(o.Medium.Form, medium.OCI)
	if !o.PublishOnly {
		o.OnMissing = cmp.Or(o.OnMissing, SkipBundle)
	}
	return &o
}

// destination is where images go: the target, or an archive.
func (o *Options) destination() imageset.Target {
	if o.Mode == ToDisk {
		return onMedium
	}
	return o.Target
}

// onMedium gives the names of repositories and tags in an archive: those of a target without a registry.
var onMedium imageset.Target

// catalogsPart is the part of a divided image set with its catalogs.
const catalogsPart = "catalogs"

// isPart tells whether a run writes a part of what several archives hold together. Such a part leaves out only what an
// inventory has: each can be written again, and by another machine.
func (o *Options) isPart() bool { return o.Shard.Count > 0 || o.PublishOnly }

// partName identifies the part of a divided image set; empty for all of it.
func (o *Options) partName() string {
	switch {
	case o.PublishOnly:
		return catalogsPart
	case o.Shard.Count > 0:
		return o.Shard.String()
	}
	return ""
}

// leavesOutNeighbour tells whether an archive leaves out what the one in its directory has, which it follows.
func (o *Options) leavesOutNeighbour() bool { return !o.All && o.Since.IsZero() && o.Against == nil }

// archiveKey identifies what an archive is to hold, so that an interrupted run is continued by the same only. A
// catalog that moved meanwhile leaves blobs that no image has any more; all else is there. The part is that of a
// divided image set; empty for all of it.
func (o *Options) archiveKey(part string) string {
	h := digest.SHA256.Digester()
	h.Hash().Write(o.Set.Text)
	if o.Against != nil {
		fmt.Fprintf(h.Hash(), "\nagainst %s", o.AgainstDigest)
	}
	if part != "" {
		fmt.Fprintf(h.Hash(), "\npart %s with %v %s", part, o.With, o.Sparse)
	}
	return h.Digest().String()
}

// Base says what a rebuilt catalog stands on.
type Base string

// What rebuilt catalogs stand on.
const (
	// KeepBase keeps the layers of the source with its server, and hides its catalog and caches.
	KeepBase Base = "keep"
	// ReplaceBase builds the image from nothing, with this program's server and cache.
	ReplaceBase Base = "replace"
)

// Shard is one part of N parts of the images; parts are counted from 1. The zero value is all images.
type Shard struct{ Index, Count int }

func (s Shard) String() string { return strconv.Itoa(s.Index) + "/" + strconv.Itoa(s.Count) }

// ParseShard reads I/N.
func ParseShard(text string) (Shard, error) {
	var s Shard
	var rest string
	if n, err := fmt.Sscanf(text+" ", "%d/%d%s", &s.Index, &s.Count, &rest); n < 2 || rest != "" ||
		s.Count < 1 || s.Count > 10_000 || s.Index < 1 || s.Index > s.Count {
		_ = err // the count of what was read says it all
		return Shard{}, fmt.Errorf("invalid shard %.40q, expected I/N with I from 1 to N", text)
	}
	return s, nil
}

// Event is a step of a run.
type Event struct {
	// Image is the source of an image that is done, with its status; empty for a step in bytes.
	Image  string
	Status Status
	Err    error
	// Images and Bytes are what is done, of AllImages and AllBytes. Bytes are those of blobs that are moved, so that
	// AllBytes shrinks where the destination turns out to have them. While Counting is set, manifests are being read,
	// and AllBytes grows.
	Images, AllImages int
	Bytes, AllBytes   int64
	Counting          bool
}
