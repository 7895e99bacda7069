package sqlite

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
)

// FindingKind is the kind of a finding.
type FindingKind string

// The kinds of findings.
const (
	// Derived: the database lacks a column or a table, and its content was computed from other data.
	Derived FindingKind = "derived"
	// Repaired: a value in the database is wrong or missing, and the right one was found.
	Repaired FindingKind = "repaired"
	// Dropped: data of the database that a catalog cannot contain.
	Dropped FindingKind = "dropped"
	// Quarantined: an invalid package was left out (see Options.KeepGoing).
	Quarantined FindingKind = "quarantined"

	// Changed: the written form differs but means the same, or a value that only later edits of the database use was
	// chosen from several possibilities.
	Changed FindingKind = "changed"
	// Lost: a database cannot represent it, so reading the database gives another catalog.
	Lost FindingKind = "lost"
)

// Finding is a remark about reading a catalog from a database or writing it to one. Package, Channel and Bundle locate
// it; those that do not apply are empty.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Package string      `json:"package,omitempty"`
	Channel string      `json:"channel,omitempty"`
	Bundle  string      `json:"bundle,omitempty"`
	Field   string      `json:"field,omitempty"`
	// Before and After are the values of a requested repair, see Options.Repair.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Reason string `json:"reason"`
}

// Altered reports whether the finding is a requested repair.
func (f Finding) Altered() bool { return f.Kind == Repaired && f.Before != f.After }

// RepairFinding returns the finding of a repair.
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

// Findings returns the findings of kind derived, repaired, dropped and quarantined so far, sorted. It is complete after
// [DB.Load].
func (db *DB) Findings() []Finding {
	db.findings.mu.Lock()
	list := slices.Clone(db.findings.list)
	db.findings.mu.Unlock()
	return sortFindings(list)
}

// sortFindings sorts findings in place and returns them without duplicates.
func sortFindings(list []Finding) []Finding {
	sort.Slice(list, func(i, j int) bool {
		a, b := &list[i], &list[j]
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Bundle, b.Bundle),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Before, b.Before),
			cmp.Compare(a.Reason, b.Reason)) < 0
	})
	return slices.Compact(list)
}
