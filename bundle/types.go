package bundle

import (
	"encoding/json"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/problem"
)

// The keys common to a bundle's annotations.yaml and the labels of its image, and the name of that file.
const (
	AnnotationMediaType      = "operators.operatorframework.io.bundle.mediatype.v1"
	AnnotationManifests      = "operators.operatorframework.io.bundle.manifests.v1"
	AnnotationMetadata       = "operators.operatorframework.io.bundle.metadata.v1"
	AnnotationPackage        = "operators.operatorframework.io.bundle.package.v1"
	AnnotationChannels       = "operators.operatorframework.io.bundle.channels.v1"
	AnnotationDefaultChannel = "operators.operatorframework.io.bundle.channel.default.v1"
	// AnnotationsName is the proper name of a bundle's annotations file: opm accepts any name, other programs only this
	// one.
	AnnotationsName = "annotations.yaml"
)

// MediaType is the format of a bundle's manifests.
type MediaType string

// The media types of bundles.
const (
	RegistryV1 MediaType = "registry+v1"
	Plain      MediaType = "plain"
	PlainV0    MediaType = "plain+v0"
	Helm       MediaType = "helm"
)

// isPlain reports whether the manifests may be any Kubernetes objects, several per file.
func (m MediaType) isPlain() bool { return m == Plain || m == PlainV0 }

// Bundle is a bundle that was read. It is immutable and safe for concurrent use.
type Bundle struct {
	// Annotations are those of annotations.yaml, completed by the image's labels.
	Annotations map[string]string
	// AnnotationsFile is the file with the annotations; empty if there is none.
	AnnotationsFile string
	MediaType       MediaType
	// ManifestsDir and MetadataDir are relative to the bundle's root, without trailing slashes.
	ManifestsDir, MetadataDir string
	Package                   string
	// Channels are as written, not trimmed; DefaultChannel is empty if the bundle declares none.
	Channels       []string
	DefaultChannel string
	// Objects are the documents of the manifests, sorted by file name, then in the order of the file.
	Objects []Object
	// CSV is the first ClusterServiceVersion among the first documents of the files; nil if there is none.
	CSV *CSV
	// Dependencies are those of dependencies.yaml, Properties those of properties.yaml, as written.
	Dependencies []Dependency
	Properties   []declcfg.Property
	// Problems are the problems of the bundle in the order of discovery: those that made it unreadable, and those about
	// skipped input.
	Problems []Problem

	provided []API // by the manifests
	declared []Declaration
	strict   []Problem // what only OLM v1 refuses
}

// Object is one Kubernetes object of the manifests.
type Object struct {
	// File is relative to the bundle's root. Document is the index of the document in the file, from 0. Line is the
	// document's first line.
	File     string
	Document int
	Line     int

	APIVersion, Kind, Namespace, Name string
	// JSON is the object as compact JSON with sorted keys; numbers are as written.
	JSON json.RawMessage
	// Size is the length of the whole file in bytes.
	Size int64
}

// First reports whether the object is the first document of its file. OLM v0 and opm read only these; OLM v1 reads all.
func (o Object) First() bool { return o.Document == 0 }

// Dependency is an entry of dependencies.yaml. Value is compact JSON.
type Dependency struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Severity says whether a problem makes a bundle invalid.
type Severity string

// The severities of problems.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// The rules that reading a bundle checks.
const (
	RuleLimit          = "limit"           // a limit is exceeded
	RuleFile           = "file"            // not a regular file: a link out of the bundle, a device
	RuleName           = "name"            // names of files, packages, channels and bundles
	RuleDirectory      = "directory"       // manifests, metadata, or a directory in them
	RuleSyntax         = "syntax"          // a file that cannot be parsed
	RuleDuplicateKey   = "duplicate-key"   // a repeated key in an object
	RuleDocuments      = "documents"       // more than one document in a file
	ruleNoObjects      = "no-objects"      // manifests without an object
	RuleCSVMissing     = "csv-missing"     // no ClusterServiceVersion
	RuleCSVSecond      = "csv-second"      // more than one of them
	RuleCSV            = "csv"             // a field of the ClusterServiceVersion
	RuleCRD            = "crd"             // an owned CRD that is missing or invalid
	RuleAnnotations    = "annotations"     // annotations.yaml
	RuleMediaType      = "media-type"      // an unknown media type
	RuleDependency     = "dependency"      // an entry of dependencies.yaml
	RuleProperty       = "property"        // a property of properties.yaml or of the annotation olm.properties
	rulePropertyTwice  = "property-twice"  // a property of which a bundle has at most one
	RuleVersionNumber  = "version-number"  // a number where a version is meant
	RuleAnnotationsTwo = "annotations-two" // several files with annotations
)

// Problem is a problem of a bundle. File is relative to the bundle's root; it, Line and Field may be empty or 0.
type Problem struct {
	Severity Severity `json:"severity"`
	// Rule is a stable name of the broken rule, such as "csv-missing".
	Rule   string `json:"rule"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// Message says what was found and, if that is not obvious, how to fix it.
	Message string `json:"message"`
}

// String formats the problem as "file:line:column: field: message" without unknown parts.
func (p Problem) String() string {
	at := problem.Place{File: p.File, Line: p.Line, Column: p.Column}
	return problem.Join(at.String(), p.Field, p.Message)
}
