package render

import (
	"context"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/sqlite"
)

// Account has the results of a rendering besides the blobs. It is filled in during the iteration and complete at its
// end; nothing of it may be used concurrently with the iteration. Use an account for one iteration only.
type Account struct {
	// Images are the images that were opened.
	Images []OpenedImage
	// LeftOut are the packages of directories that [Options.KeepGoing] left out, and Repairs the changes that
	// [Options.Repair] made in directories; both are complete before the first blob. Those of databases are in
	// Findings.
	LeftOut []leftOut
	Repairs []declcfg.Repair
	// Packages is the number of packages of the last database, which is known before its first blob; 0 if there was none.
	Packages int
	// SchemaVersion is that of the last database; nil if there was none or it has no version.
	SchemaVersion *int
	// Findings are those of databases, set after the last blob.
	Findings []sqlite.Finding
	// Facts are the results of plain SQL queries on the last database; nil without [Options.Facts].
	Facts *sqlite.Facts

	mu sync.Mutex
}

// leftOut is an invalid package that was left out. The reason is a *[declcfg.ValidationError] or an
// *[appregistry.Error].
type leftOut struct {
	Package string
	Reason  error
}

// OpenedImage is an image that was opened.
type OpenedImage struct {
	Reference string
	Kind      Kind
	// Digest is the name of the image with its digest.
	Digest string
}

func (o *Options) opened(i OpenedImage) {
	a := o.account
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Images = append(a.Images, i)
	if o.Opened != nil {
		o.Opened(i)
	}
}

// leaveOut records a package that was left out.
func (a *Account) leaveOut(pkg string, reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.LeftOut = append(a.LeftOut, leftOut{pkg, reason})
}

func (a *Account) repaired(r declcfg.Repair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Repairs = append(a.Repairs, r)
}

// recordDatabase records what is known about a database before its first blob.
func (a *Account) recordDatabase(ctx context.Context, db *sqlite.DB) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Packages, err = db.Packages(ctx)
	return err
}

// database records the results about a database after its last blob.
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
