// Package sqlite reads and writes index databases: the SQLite files in which opm stored catalogs before file-based
// ones. [Open] opens a database, and [DB.Blobs] returns its catalog.
//
// Every schema version is read without a migration, from the first to the last (13): columns and tables that an old
// version lacks are derived while reading. The file is never written to; a database that cannot be read in place,
// because of a write-ahead log or an interrupted transaction, is copied to a private directory first.
//
// A database is written as a whole, in the last schema version, and appears completely or not at all ([Create]). A
// change of a database is its changed catalog, written again under the same lock ([Replace]).
//
//	file ──> header, locks, copy ──> schema ──> quick_check ──> rows ──> graph ──> blobs
//	         (Open)                                            (Load)   (Load)   (Blobs)
//
//	blobs ──> columns, edges, rows ──> integrity_check, foreign_key_check ──> fsync, rename
//
// The graph of packages, channels and bundles is held in memory; the manifests of the bundles, which are most of a
// database, are read one bundle at a time.
//
// A database is considered hostile input: see the checks in file.go and schema.go. Rules of upgrade graphs (validation,
// edits) are not in this package.
package sqlite
