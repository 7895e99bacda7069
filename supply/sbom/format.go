package sbom

import (
	"fmt"
	"io"
	"strings"
)

// Format is a format of documents.
type Format string

// The formats of documents.
const (
	SPDX      Format = "spdx"
	CycloneDX Format = "cyclonedx"
)

// ParseFormat reads the name of a format.
func ParseFormat(text string) (Format, error) {
	switch f := Format(strings.ToLower(text)); f {
	case SPDX, CycloneDX:
		return f, nil
	}
	return "", fmt.Errorf("unknown format %.80q, expected spdx or cyclonedx", text)
}

// MediaType returns the media type of documents, which is also the artifact type of a manifest that attaches one.
func (f Format) MediaType() string {
	if f == SPDX {
		return "application/spdx+json"
	}
	return "application/vnd.cyclonedx+json"
}

// PredicateType returns the type of an in-toto predicate that is a document.
func (f Format) PredicateType() string {
	if f == SPDX {
		return "https://spdx.dev/Document"
	}
	return "https://cyclonedx.org/bom"
}

// Write writes a document. The same inventory and options give the same bytes.
func (f Format) Write(w io.Writer, inv *Inventory, o Options) error {
	if f == SPDX {
		return writeSPDX(w, inv, o)
	}
	return writeCycloneDX(w, inv, o)
}
