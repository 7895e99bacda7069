package transport

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// Table is a table of transports. It is not changed once a client has it.
type Table []Row

// Row returns the row of a transport; nil if there is none.
func (t Table) Row(name Name) *Row {
	if i := slices.IndexFunc(t, func(r Row) bool { return r.Name == name }); i >= 0 {
		return &t[i]
	}
	return nil
}

// Has tells whether a text begins as a name of one of the transports.
func (t Table) Has(text string) bool {
	return slices.ContainsFunc(t, func(r Row) bool { return strings.HasPrefix(text, r.Prefix()) })
}

// Prefixes lists what names begin with, with commas.
func (t Table) Prefixes() string {
	var all []string
	for _, r := range t {
		all = append(all, r.Prefix())
	}
	return strings.Join(all, ", ")
}

// ErrNoAttachments is the class of errors about places that keep no signatures, attestations or other attachments:
// docker-archive:, dir: and containers-storage:.
var ErrNoAttachments = fault.New(fault.Usage, "keeps no signatures or other attachments")

// CheckAttachments returns an [ErrNoAttachments] if no attachments can be written beside an image at the destination.
func (t Table) CheckAttachments(d Destination) error {
	return t.checkAttachments(d.Transport, d.String())
}

// CheckAttached returns an [ErrNoAttachments] if nothing can be attached to an image that is read.
func (t Table) CheckAttached(s Source) error {
	return t.checkAttachments(s.Transport, string(s.Transport)+":"+s.Path)
}

func (t Table) checkAttachments(name Name, place string) error {
	if row := t.Row(name); row != nil && row.Attachments {
		return nil
	}
	var keep []string
	for _, r := range t {
		if r.Attachments {
			keep = append(keep, r.Prefix())
		}
	}
	return redact.Error(&noAttachments{place, strings.Join(keep, ", ")})
}

// noAttachments is the error of one place.
type noAttachments struct {
	place string
	keep  string // the prefixes of transports that keep them
}

func (e *noAttachments) Error() string {
	return fmt.Sprintf("%s %v beside an image, as %s do", e.place, ErrNoAttachments, e.keep)
}

func (e *noAttachments) Unwrap() error { return ErrNoAttachments }
