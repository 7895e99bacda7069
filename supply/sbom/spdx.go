package sbom

import (
	"io"
)

// spdxNamespace is what the namespaces of documents begin with. They are names and no places to fetch documents from.
const spdxNamespace = "https://github.com/operator-bindery/bindery/spdx/"

// noAssertion is SPDX's way to say that nothing is claimed.
const noAssertion = "NOASSERTION"

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	SPDXID           string         `json:"SPDXID"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	Comment          string         `json:"comment,omitempty"`
	CopyrightText    string         `json:"copyrightText"`
	DownloadLocation string         `json:"downloadLocation"`
	ExternalRefs     []spdxRef      `json:"externalRefs,omitempty"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	Name             string         `json:"name"`
	Purpose          string         `json:"primaryPackagePurpose"`
	Supplier         string         `json:"supplier"`
	VersionInfo      string         `json:"versionInfo,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Locator  string `json:"referenceLocator"`
	Type     string `json:"referenceType"`
}

type spdxRelationship struct {
	Related string `json:"relatedSpdxElement"`
	Type    string `json:"relationshipType"`
	Element string `json:"spdxElementId"`
}

// spdxPurposes are the purposes that are not CONTAINER.
var spdxPurposes = map[kind]string{kindPackage: "OTHER", kindOperator: "OTHER", kindProgram: "APPLICATION",
	kindModule: "LIBRARY", kindLayer: "ARCHIVE"}

// writeSPDX writes the inventory as an SPDX 2.3 document in JSON (https://spdx.github.io/spdx-spec/v2.3/). Each entry
// is one line. The namespace is derived from the digest of the image.
func writeSPDX(w io.Writer, inv *Inventory, o Options) error {
	list := components(inv)
	d := newDocument(w)
	subject := inv.Image.Digest
	d.member("SPDXID", "SPDXRef-DOCUMENT")
	d.member("creationInfo", spdxCreation{Created: o.created(), Creators: []string{"Tool: bindery-" + o.Version}})
	d.member("dataLicense", "CC0-1.0")
	d.member("documentNamespace", spdxNamespace+subject.Algorithm().String()+"-"+subject.Encoded())
	d.member("name", list[0].name)
	d.begin("packages")
	for _, c := range list {
		d.entry(c.spdx())
	}
	d.end()
	d.begin("relationships")
	d.entry(spdxRelationship{spdxID(list[0]), "DESCRIBES", "SPDXRef-DOCUMENT"})
	for _, c := range list {
		for _, part := range c.contains {
			d.entry(spdxRelationship{spdxID(part), "CONTAINS", spdxID(c)})
		}
		for _, needed := range c.needs {
			d.entry(spdxRelationship{spdxID(needed), "DEPENDS_ON", spdxID(c)})
		}
	}
	d.end()
	d.member("spdxVersion", "SPDX-2.3")
	return d.close()
}

func spdxID(c *component) string { return "SPDXRef-" + c.id }

func (c *component) spdx() spdxPackage {
	p := spdxPackage{SPDXID: spdxID(c), CopyrightText: noAssertion, DownloadLocation: noAssertion,
		LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, Name: c.name, Purpose: "CONTAINER",
		Supplier: noAssertion, VersionInfo: c.version, Comment: c.comment}
	switch {
	case p.Comment == "":
		p.Comment = c.remark
	case c.remark != "":
		p.Comment = c.remark + "; " + c.comment
	}
	if purpose, ok := spdxPurposes[c.kind]; ok {
		p.Purpose = purpose
	}
	if sum := c.sha256(); sum != "" {
		p.Checksums = []spdxChecksum{{"SHA256", sum}}
	}
	if c.purl != "" {
		p.ExternalRefs = []spdxRef{{"PACKAGE-MANAGER", c.purl, "purl"}}
	}
	return p
}
