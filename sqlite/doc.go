// Package sqlite reads and writes index databases: the SQLite files in which opm kept catalogs before there were
// file-based ones.
//
// Every schema version is read as it is, from the first to the last (13): columns and tables that an old version lacks
// are derived from what it has, while reading. Nothing is migrated in place and the file is never written to; a
// database that cannot be read as it stands, because of a write-ahead log or an interrupted transaction beside it, is
// copied to a private directory first.
//
// A database is written as a whole, at the last schema version, and appears whole or not at all ([Create]). A change of
// one is its catalog, changed and written again under the same lock ([Replace]).
//
//	file ──> header, locks, copy ──> schema ──> quick_check ──> rows ──> graph ──> blobs
//	         (Open)                                            (Load)   (Load)   (Blobs)
//
//	blobs ──> columns, edges, rows ──> integrity_check, foreign_key_check ──> fsync, rename
//
// The graph of packages, channels and bundles is held in memory; the manifests of the bundles, which are most of a
// database, are read one bundle at a time.
//
// A database is hostile until shown otherwise: see the checks in file.go and schema.go. Graph rules beyond what the
// database itself expresses (validation, edits) do not live here.
package sqlite
