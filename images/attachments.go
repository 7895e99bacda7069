package images

import (
	"fmt"
	"strings"

	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/redact"
)

// ErrNoAttachments is the class of errors about places that keep no signatures, attestations or other attachments:
// docker-archive:, dir: and containers-storage:.
var ErrNoAttachments = fault.New(fault.Usage, "keeps no signatures or other attachments")

// noAttachments is the error of one place.
type noAttachments struct{ place string }

func (e *noAttachments) Error() string {
	return fmt.Sprintf("%s %v beside an image: docker://, oci: and oci-archive: do", e.place, ErrNoAttachments)
}

func (e *noAttachments) Unwrap() error { return ErrNoAttachments }

// CheckAttachments returns an [ErrNoAttachments] if no attachments can be written beside an image at the destination.
func (d Destination) CheckAttachments() error { return BuiltIn().checkAttachments(d) }

func (ts Transports) checkAttachments(d Destination) error {
	if row := ts.row(d.Transport); row != nil && row.Attachments {
		return nil
	}
	return redact.Error(&noAttachments{d.String()})
}

// checkAttachable returns an error if there are attachments and a destination keeps none.
func (o CopyOptions) checkAttachable(dests []Destination) error {
	if len(o.Attachments) == 0 {
		return nil
	}
	for _, d := range dests {
		if err := o.transports().checkAttachments(d); err != nil {
			return err
		}
	}
	return nil
}

// nameInLayout returns the name of an image in a layout if it is one of a registry, with a host; else it is empty.
func nameInLayout(name string) string {
	host, _, ok := strings.Cut(name, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return ""
	}
	ref, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	return reference.TagNameOnly(ref).String()
}
