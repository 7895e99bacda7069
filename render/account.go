package render

import (
	"context"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Account is what a rendering finds out besides the blobs. It is filled in while blobs are taken, and complete when the
// iteration has ended; no method or field may be used concurrently with that. An account is for one iteration.
type Account struct {
	// Images are the images that were opened.
	Images []OpenedImage
	// LeftOut are the packages of directories that [Options.KeepGoing] left out, and Repairs what [Options.Repair]
	// changed in them, both before the first blob. Those of a database are among Findings.
	LeftOut []LeftOut
	Repairs []declcfg.Repair
	// SchemaVersion is that of the last database; nil if there was none, or one without a version.
	SchemaVersion *int
	// Findings are those of databases, which are there after the last blob.
	Findings []sqlite.Finding
	// Facts are what plain SQL finds in the last database; nil without [Options.Facts].
	Facts *sqlite.Facts

	mu sync.Mutex
}

// LeftOut is a package that was left out. The reason is a *[declcfg.ValidationError] or an *[appregistry.Error].
type LeftOut struct {
	Package string
	Reason  error
}

// OpenedImage is an image that has been opened.
type OpenedImage struct {
	Reference string
	Kind      Kind
	// Digest names the image by its digest.
	Digest string
}

// opened reports an image.
func (o *Options) opened(i OpenedImage) {
	a := o.account
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Images = append(a.Images, i)
	if o.Opened != nil {
		o.Opened(i)
	}
}

// leaveOut records a package.
func (a *Account) leaveOut(pkg string, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.LeftOut = append(a.LeftOut, LeftOut{pkg, reason})
}

// repaired records a repair.
func (a *Account) repaired(r declcfg.Repair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Repairs = append(a.Repairs, r)
}

// database records what is known of a database after its last blob.
func (a *Account) database(ctx context.Context, db *sqlite.DB, facts bool) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if version, has := db.SchemaVersion(); has {
		a.SchemaVersion = &version
	}
	a.Findings = append(a.Findings, db.Findings()...)
	if facts {
		a.Facts, err = db.Facts(ctx)
	}
	return err
}
