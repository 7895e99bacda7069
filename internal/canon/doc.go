// Package canon turns the text of catalog documents, YAML or JSON, into canonical JSON: compact, object keys sorted at
// every level, and numbers in the very digits of the source.
//
//	io.Reader ──Splitter──> Doc ──Converter──> canonical JSON
//	                         │
//	                         └──Locate──> the line of a value, for errors
//
// The meaning of YAML is that of YAML 1.1 as opm reads it: "yes", "on" and "n" are booleans, 010 is eight, dates are
// strings, "<<" merges. Two ways lead from YAML to JSON. The fast one is a single pass over the regular subset in which
// catalogs are written; it answers "not mine" to everything else, which then goes the slow way through the YAML library
// that opm uses. Both give the same bytes wherever both answer, which the fuzz targets check.
//
// The fast way stands in for yaml.v2, to which sigs.k8s.io/yaml leads and which takes 28 times as long for the same bytes
// (BenchmarkYAMLFast against BenchmarkYAMLLibrary; BenchmarkYAMLSlow is the library with the limits). JSON is rewritten in
// one pass in place of encoding/json or jsontext: decoding into maps and writing these takes 20 times as long (BenchmarkJSON
// against BenchmarkJSONLibrary) and loses the digits of numbers.
//
// Input is taken to be hostile: sizes, depth and the growth by aliases are limited before memory is spent on them, and
// text that is not UTF-8 is refused. Nothing here knows what a catalog is, and nothing here reads files.
package canon
