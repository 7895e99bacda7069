package mirror

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/mirror/filter"
)

// Status is what became of an image.
type Status string

// What becomes of images.
const (
	Copied  Status = "copied"
	Present Status = "present" // the destination had it
	Failed  Status = "failed"
	Skipped Status = "skipped" // not copied since something else failed, or in a dry run
	Blocked Status = "blocked" // left out by blockedImages
	Planned Status = "planned" // would be copied; only in dry runs
)

// Kind says what an image is in the image set. The texts are those of oc-mirror's lists.
type Kind string

// The kinds of images.
const (
	ReleaseContent Kind = "ocpReleaseContent" // an image that a release names
	Release        Kind = "ocpRelease"
	Graph          Kind = "cincinnatiGraph" // the data of update graphs
	Related        Kind = "operatorRelatedImage"
	ChartImage     Kind = "helmImage"
	Additional     Kind = "generic"
	Bundle         Kind = "operatorBundle"
	Catalog        Kind = "operatorCatalog"
)

// kinds are in the order in which images are copied: releases and catalogs come after all that they name.
var kinds = []Kind{ReleaseContent, Release, Graph, Related, ChartImage, Additional, Bundle, Catalog}

func (k Kind) rank() int { return slices.Index(kinds, k) }

// Account is what a run has done. Its JSON form is stable.
type Account struct {
	Mode        Mode             `json:"mode"`
	Config      string           `json:"config,omitempty"`
	Destination string           `json:"destination,omitempty"`
	DryRun      bool             `json:"dryRun,omitempty"`
	Releases    []ReleaseAccount `json:"releases,omitempty"`
	// Graph is the image with the data of update graphs, if it is asked for.
	Graph    *GraphAccount    `json:"graph,omitempty"`
	Catalogs []CatalogAccount `json:"catalogs"`
	Charts   []ChartAccount   `json:"charts,omitempty"`
	Images   []*imageAccount  `json:"images"`
	// Resources are the files for clusters that were written, Files the other ones.
	Resources []string         `json:"resources"`
	Files     []string         `json:"files,omitempty"`
	Archives  []archiveAccount `json:"archives,omitempty"`
	Problems  []Problem        `json:"problems"`
	Totals    totals           `json:"totals"`
	// Repositories has what would be sent to each repository; only in dry runs.
	Repositories []RepositoryBytes `json:"repositories,omitempty"`
	// Free is the space on the disk of the archive in bytes; only in dry runs to disk.
	Free int64 `json:"free,omitempty"`
	Exit int   `json:"exit"`
}

// CatalogAccount is what became of one catalog.
type CatalogAccount struct {
	Source string        `json:"source"`
	Digest digest.Digest `json:"digest,omitempty"`
	// FilterHash identifies the filter, as oc-mirror computes it.
	FilterHash        string                      `json:"filterHash,omitempty"`
	Destination       string                      `json:"destination"`
	DestinationDigest digest.Digest               `json:"destinationDigest,omitempty"`
	Packages          map[string]catalogedPackage `json:"packages"`
	// Published tells that the destination has the catalog as it is described here.
	Published bool `json:"published"`
	// Present tells that the destination had it before the run.
	Present bool `json:"present,omitempty"`
	// leftOut are the bundles that were taken out, with the reason.
	LeftOut []leftOut `json:"leftOut,omitempty"`
	// Missing are the packages, channels and versions that are asked for and that the source does not have, as
	// sentences.
	Missing []string `json:"missing,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// catalogedPackage is a package of a mirrored catalog.
type catalogedPackage struct {
	DefaultChannel string              `json:"defaultChannel"`
	Channels       map[string][]string `json:"channels"`
}

// leftOut is a bundle that a catalog lacks, since an image that it names is not available.
type leftOut struct {
	Package string `json:"package"`
	Bundle  string `json:"bundle"`
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	Reason  string `json:"reason"`
}

// imageAccount is what became of one image.
type imageAccount struct {
	Source      string        `json:"source"`
	Destination string        `json:"destination"`
	Kind        Kind          `json:"type"`
	Digest      digest.Digest `json:"digest,omitempty"`
	// Bytes is the size of the image where it is known, Sent is what was transferred of it.
	Bytes    int64    `json:"bytes"`
	Sent     int64    `json:"sent"`
	Status   Status   `json:"status"`
	Error    string   `json:"error,omitempty"`
	Packages []string `json:"packages,omitempty"`
	Bundles  []string `json:"bundles,omitempty"`
	// Signatures are the attachments that were copied with it, or were there.
	Signatures []digest.Digest `json:"signatures,omitempty"`
	// Unsigned says why signatures could not be read.
	Unsigned string `json:"unsigned,omitempty"`
}

// archiveAccount is a segment of a medium.
type archiveAccount struct {
	Name   string        `json:"name"`
	Bytes  int64         `json:"bytes"`
	Digest digest.Digest `json:"sha256"`
}

// Problem is something that a user should know about.
type Problem struct {
	Level   filter.Level `json:"level"`
	Object  string       `json:"object,omitempty"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
}

func (p Problem) String() string {
	text := p.Message
	if p.Object != "" {
		text = p.Object + ": " + text
	}
	if p.Hint != "" {
		text += "; " + p.Hint
	}
	return text
}

// RepositoryBytes is the size of what would be sent to a repository or deleted from it, where blobs that several of
// them have are counted once, or of what it has.
type RepositoryBytes struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// ByRepository lists sizes by the names of repositories, sorted.
func ByRepository(of map[string]int64) []RepositoryBytes {
	out := []RepositoryBytes{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		out = append(out, RepositoryBytes{name, of[name]})
	}
	return out
}

// Totals count images and bytes.
type totals struct {
	Images  int   `json:"images"`
	Copied  int   `json:"copied"`
	Present int   `json:"present"`
	Failed  int   `json:"failed"`
	Bytes   int64 `json:"bytes"`
	Sent    int64 `json:"sent"`
}

// total computes the totals and sorts what comes in no order.
func (a *Account) total() {
	a.Totals = totals{}
	for _, i := range a.Images {
		if i.Status == Blocked {
			continue
		}
		a.Totals.Images++
		a.Totals.Bytes += i.Bytes
		a.Totals.Sent += i.Sent
		switch i.Status {
		case Copied:
			a.Totals.Copied++
		case Present:
			a.Totals.Present++
		case Failed, Skipped:
			a.Totals.Failed++
		}
	}
	slices.SortStableFunc(a.Images, func(x, y *imageAccount) int {
		return cmp.Or(x.Kind.rank()-y.Kind.rank(), cmp.Compare(x.Destination, y.Destination),
			cmp.Compare(x.Source, y.Source))
	})
}

// Count returns how many images of the kinds are at the destination, and how many were asked for.
func (a *Account) Count(kinds ...Kind) (there, asked int) {
	for _, i := range a.Images {
		if !slices.Contains(kinds, i.Kind) || i.Status == Blocked {
			continue
		}
		asked++
		if i.Status == Copied || i.Status == Present {
			there++
		}
	}
	return there, asked
}

// IncompleteError is the error of a run that has done what it could: the numbers tell what is missing, images of
// releases, of operators, additional ones, and those of charts.
type IncompleteError struct {
	Releases, Operators, Additional, Charts int
	// UnpublishedReleases are the releases that are not at the destination; NoGraph tells that the image of update graphs
	// is not.
	UnpublishedReleases []string
	NoGraph             bool
	// UnreadCharts are the charts whose images are not known.
	UnreadCharts []string
	// Unpublished are the catalogs that are not published.
	Unpublished []string
	// leftOut is the number of bundles that were taken out of catalogs, and Missing that of the packages, channels and
	// versions that catalogs do not have.
	LeftOut, Missing int
	// Damaged tells that something of the archive is not what its digest says.
	Damaged bool
	// First names one of what is missing, with the reason; the account has all.
	First string
	// Cause is the error of the first image or catalog that could not be read or written; nil if there is none.
	Cause error
}

// LacksReleases tells that a release or the graph image is not there, or an image of a release.
func (e *IncompleteError) LacksReleases() bool {
	return e.NoGraph || e.Releases+len(e.UnpublishedReleases) > 0
}

// LacksCharts tells that an image of a chart is not there, or is not known.
func (e *IncompleteError) LacksCharts() bool { return e.Charts+len(e.UnreadCharts) > 0 }

// OnlyNames tells that nothing is missing but what the image set names and the catalogs do not have.
func (e *IncompleteError) OnlyNames() bool {
	return e.Missing > 0 && !e.LacksReleases() && !e.LacksCharts() && e.Operators+e.Additional+e.LeftOut+len(e.Unpublished) == 0
}

func (e *IncompleteError) Error() string {
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, strconv.Itoa(n)+" "+many)
		}
	}
	add(e.Releases, "image of releases was not copied", "images of releases were not copied")
	add(len(e.UnpublishedReleases), "release was not published", "releases were not published")
	if e.NoGraph {
		parts = append(parts, "the graph image was not published")
	}
	add(e.Operators, "image of operators was not copied", "images of operators were not copied")
	add(e.Additional, "additional image was not copied", "additional images were not copied")
	add(e.Charts, "image of charts was not copied", "images of charts were not copied")
	add(len(e.UnreadCharts), "chart could not be read", "charts could not be read")
	add(e.Missing, "name of the image set is not in its catalog", "names of the image set are not in their catalogs")
	add(e.LeftOut, "bundle was taken out of its catalog", "bundles were taken out of their catalogs")
	add(len(e.Unpublished), "catalog was not published", "catalogs were not published")
	if len(parts) == 0 {
		return "the mirror is incomplete"
	}
	text := strings.Join(parts, ", ")
	if e.First != "" {
		text += "; the first: " + e.First
	}
	return text
}
