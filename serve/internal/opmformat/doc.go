// Package opmformat has the names of the files in opm's cache directories. Package serve recognizes such a directory by
// them, package serve/opmcache writes one.
//
//	json        digest                  text of 16 hexadecimal digits: FNV-1a of the catalog and of cache/, each as a tar archive
//	            cache/packages.json     the index: packages, channels, entries with their edges
//	            cache/P_C_B.json        the answer for an entry, as JSON
//	            cache/metas/SCHEMA/PACKAGE/HASH.json   one blob of a custom schema
//	pogreb.v1   pogreb.v1/digest        FNV-1a of all blobs of the catalog, and of all keys and values of the database
//	            pogreb.v1/db            the database: packages.json, bundles/P/C/B, metas/SCHEMA/PACKAGE
package opmformat

// Names in a cache directory.
const (
	// PogrebDir exists in the format pogreb.v1; JSONDir, next to DigestName, in the format json.
	PogrebDir = "pogreb.v1"
	JSONDir   = "cache"
	// DigestName is the file with the digest: in PogrebDir, or next to JSONDir.
	DigestName = "digest"
	// IndexName is the index: a key of the database or a file in JSONDir.
	IndexName = "packages.json"
)
