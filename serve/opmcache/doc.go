// Package opmcache builds the caches that opm's own server reads, for images that it serves. There are two formats:
//
//	opm-json    tmp/cache/cache/<package>_<channel>_<bundle>.json   one file per entry, in the layer of the package
//	            tmp/cache/cache/metas/<schema>/<package>/*.json     blobs of custom schemas, likewise
//	            tmp/cache/cache/packages.json                       the index, in a layer above all packages
//	            tmp/cache/digest                                    likewise
//	opm-pogreb  tmp/cache/pogreb.v1/db/*                            one database, in a layer above all packages
//	            tmp/cache/pogreb.v1/digest                          likewise
//
// opm compares the digest with the one it computes before it serves, unless a flag disables that. It is the 64-bit
// FNV-1a hash of the catalog and the cache. That of opm-json covers the bytes, names and modes of all files below
// /configs and of the cache; that of opm-pogreb covers the content of all blobs and all entries of the database,
// independent of file names and modes.
//
// All bytes depend only on the catalog. Therefore the database is not written with opm's library, akrylysov/pogreb: it
// uses a random seed and opm fills it in random order, so that no two builds would have the same digest. The tests read
// the written files with that library. Building needs the memory of the largest package, and a temporary file as large
// as the cache.
package opmcache
