package sqlite

import (
	"cmp"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
)

// FindingKind says what became of something in a database.
type FindingKind string

// The kinds of findings.
const (
	// Derived: the database lacks a column or a table, and its content was worked out from what is there.
	Derived FindingKind = "derived"
	// Repaired: the database has a value that is wrong or missing, and the right one was found.
	Repaired FindingKind = "repaired"
	// Dropped: something in the database has no place in the catalog.
	Dropped FindingKind = "dropped"
	// Quarantined: a package is broken and was left out (see Options.KeepGoing).
	Quarantined FindingKind = "quarantined"

	// Changed: what is written says the same in another form, or something that only later edits of the database use was
	// chosen from several possibilities.
	Changed FindingKind = "changed"
	// Lost: a database has no place for it, and what is read from it will differ from the catalog.
	Lost FindingKind = "lost"
)

// Finding is something to know about how a catalog came out of a database, or into one. Package,
// Channel and Bundle say where; those that do not apply are empty.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Package string      `json:"package,omitempty"`
	Channel string      `json:"channel,omitempty"`
	Bundle  string      `json:"bundle,omitempty"`
	Field   string      `json:"field,omitempty"`
	// Before and After are the values of what was changed on request, see Options.Repair.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Reason string `json:"reason"`
}

// Altered reports whether something was changed on request.
func (f Finding) Altered() bool { return f.Kind == Repaired && f.Before != f.After }

// RepairFinding is the finding about a change.
func RepairFinding(r declcfg.Repair) Finding {
	return Finding{
		Kind: Repaired, Package: r.Package, Channel: r.Channel, Bundle: r.Bundle,
		Field: r.Field, Before: r.Before, After: r.After, Reason: r.Reason,
	}
}

type findings struct {
	mu   sync.Mutex
	list []Finding
}

func (f *findings) add(found ...Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, found...)
}

// Findings returns what was derived, repaired, dropped and quarantined so far, sorted. It is complete after
// [DB.Load].
func (db *DB) Findings() []Finding {
	db.findings.mu.Lock()
	list := slices.Clone(db.findings.list)
	db.findings.mu.Unlock()
	return sortFindings(list)
}

// sortFindings sorts findings in place, and returns them without repetitions.
func sortFindings(list []Finding) []Finding {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Bundle, b.Bundle),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Before, b.Before), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(list)
}
