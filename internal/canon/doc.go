// Package canon converts catalog documents, YAML or JSON, to canonical JSON: compact, with object keys sorted at every
// level and numbers with the digits of the source.
//
//	io.Reader ──Splitter──> Doc ──Converter──> canonical JSON
//	                         │
//	                         └──Locate──> the line of a value, for errors
//
// YAML has the meaning of YAML 1.1 as opm reads it: "yes", "on" and "n" are booleans, 010 is eight, dates are strings,
// "<<" merges. There are two implementations. The fast one makes a single pass over the regular subset in which
// catalogs are written and gives up on everything else. The slow one is the YAML library that opm uses. Fuzz targets
// check that both give the same bytes.
//
// The fast implementation replaces yaml.v2, which sigs.k8s.io/yaml uses and which takes 28 times as long
// (BenchmarkYAMLFast against BenchmarkYAMLLibrary; BenchmarkYAMLSlow is the library with the limits). JSON is rewritten
// in one pass without encoding/json or jsontext: decoding into maps and encoding these takes 20 times as long
// (BenchmarkJSON against BenchmarkJSONLibrary) and loses the digits of numbers.
//
// Input is considered hostile: sizes, depth and the expansion of aliases are limited before memory is used for them,
// and text that is not UTF-8 is refused. The package knows nothing about catalogs and reads no files.
package canon
