// Package provenance writes how an image was built: in-toto statements v1 with the SLSA provenance v1 predicate
// (https://slsa.dev/spec/v1.0/provenance, https://github.com/in-toto/attestation/tree/main/spec/v1).
package provenance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// The names of formats.
const (
	// PredicateType is the type of [Build.Predicate].
	PredicateType = "https://slsa.dev/provenance/v1"
	// StatementType is the media type of statements, and the artifact type of a manifest that attaches an unsigned one.
	StatementType = "application/vnd.in-toto+json"
	// LocalBuilder is the builder of images that somebody builds by hand.
	LocalBuilder = "https://github.com/operator-bindery/bindery/builders/local/v1"
)

// buildTypes is what the types of builds begin with. docs/reference/attachments.md describes them.
const buildTypes = "https://github.com/operator-bindery/bindery/build/"

// Build describes one build.
type Build struct {
	// Command is the command with its subcommands, such as "build catalog".
	Command string
	// Parameters are the flags and arguments that the result depends on, by name in lowerCamelCase: strings, numbers,
	// booleans and slices of strings.
	Parameters map[string]any
	// Dependencies are what was read. Their order does not matter.
	Dependencies []Dependency
	// Builder is the URI of who vouches for the build; [LocalBuilder] if empty.
	Builder string
	// Version is that of bindery, Go that of the Go that it was built with, Program the digest of its program file; it
	// may be empty.
	Version, Go string
	Program     digest.Digest
	// Subject is the digest of the image, of which the invocation's name is derived.
	Subject digest.Digest
	// Started and Finished are left out if they are zero.
	Started, Finished time.Time
}

// Dependency is a file, a tree of files or an image that was read.
type Dependency struct {
	// Name says what it was for, such as "base".
	Name string
	// URI may be empty.
	URI    string
	Digest digest.Digest
}

// The parts of the predicate. Members are in alphabetical order.
type (
	predicate struct {
		Definition definition `json:"buildDefinition"`
		Run        run        `json:"runDetails"`
	}
	definition struct {
		BuildType    string         `json:"buildType"`
		External     map[string]any `json:"externalParameters"`
		Internal     map[string]any `json:"internalParameters"`
		Dependencies []resource     `json:"resolvedDependencies"`
	}
	resource struct {
		Digest map[string]string `json:"digest"`
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
	}
	run struct {
		Builder  builder  `json:"builder"`
		Metadata metadata `json:"metadata"`
	}
	builder struct {
		Dependencies []resource        `json:"builderDependencies,omitempty"`
		ID           string            `json:"id"`
		Version      map[string]string `json:"version"`
	}
	metadata struct {
		FinishedOn   string `json:"finishedOn,omitempty"`
		InvocationID string `json:"invocationId"`
		StartedOn    string `json:"startedOn,omitempty"`
	}
)

// buildType returns the URI of the type of builds of a command: "build catalog" is .../build/catalog/v1, "index add" is
// .../build/index-add/v1.
func buildType(command string) string {
	return buildTypes + strings.ReplaceAll(strings.TrimPrefix(command, "build "), " ", "-") + "/v1"
}

// Predicate returns the predicate. It is a function of the build.
func (b *Build) Predicate() (json.RawMessage, error) {
	external := map[string]any{"command": b.Command}
	for name, value := range b.Parameters {
		external[name] = value
	}
	p := predicate{
		Definition: definition{
			BuildType: buildType(b.Command), External: external, Dependencies: []resource{},
			Internal: map[string]any{"bindery": map[string]string{"goVersion": b.Go, "version": b.Version}},
		},
		Run: run{
			Builder:  builder{ID: cmp.Or(b.Builder, LocalBuilder), Version: map[string]string{"bindery": b.Version}},
			Metadata: metadata{InvocationID: "urn:" + b.Subject.String()},
		},
	}
	if b.Program != "" {
		p.Run.Builder.Dependencies = []resource{{digestSet(b.Program), "bindery",
			"pkg:generic/bindery@" + b.Version}}
	}
	dependencies := slices.Clone(b.Dependencies)
	slices.SortFunc(dependencies, func(x, y Dependency) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.URI, y.URI), cmp.Compare(x.Digest, y.Digest))
	})
	for _, d := range slices.Compact(dependencies) {
		p.Definition.Dependencies = append(p.Definition.Dependencies, resource{digestSet(d.Digest), d.Name, d.URI})
	}
	if !b.Started.IsZero() {
		p.Run.Metadata.StartedOn = b.Started.UTC().Format(time.RFC3339)
	}
	if !b.Finished.IsZero() {
		p.Run.Metadata.FinishedOn = b.Finished.UTC().Format(time.RFC3339)
	}
	return encode(p)
}

// Statement returns an in-toto statement v1 about an image, which ends with a line feed. An empty name is left out.
func Statement(subject digest.Digest, name, predicateType string, predicate json.RawMessage) ([]byte, error) {
	type statement struct {
		Type          string          `json:"_type"`
		Predicate     json.RawMessage `json:"predicate"`
		PredicateType string          `json:"predicateType"`
		Subject       []resource      `json:"subject"`
	}
	text, err := encode(statement{"https://in-toto.io/Statement/v1", predicate, predicateType,
		[]resource{{Digest: digestSet(subject), Name: name}}})
	return append(text, '\n'), err
}

func digestSet(d digest.Digest) map[string]string {
	return map[string]string{d.Algorithm().String(): d.Encoded()}
}

// encode returns JSON on one line, with the characters of HTML as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
