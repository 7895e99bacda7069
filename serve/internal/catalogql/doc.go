// Package catalogql answers GraphQL queries about a catalog as OLM v1's catalogd does.
//
//	blobs ──> Discovery (fields) ──> Service (type system) ──> Answer, which reads blobs
//
// The type system is made from the content: each schema of blobs is a field of the query and a type, each key of its
// blobs a field of that type. Parsing and validation of queries are those of github.com/graphql-go/graphql, which
// catalogd uses too, so that messages are equal. Execution is this package's: it writes an answer while it reads one
// blob after the other, so that its memory does not depend on the sizes of catalog and answer, and ends when its
// context does.
//
// Queries are hostile. A query that would be slow to validate or whose fragments grow without bound is refused before
// the library sees it; see the limits in guard.go. Catalogs are hostile too: a type system has bounded numbers of
// schemas and fields.
package catalogql
