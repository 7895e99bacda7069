// Package opmcache makes the caches that opm's own server reads, for images that are served by it. There are two formats:
//
//	opm-json    tmp/cache/cache/<package>_<channel>_<bundle>.json   one file an entry, in the layer of the package
//	            tmp/cache/cache/metas/<schema>/<package>/*.json     blobs of custom schemas, likewise
//	            tmp/cache/cache/packages.json                       the index, in a layer on top
//	            tmp/cache/digest                                    likewise
//	opm-pogreb  tmp/cache/pogreb.v1/db/*                            one database, in a layer on top
//	            tmp/cache/pogreb.v1/digest                          likewise
//
// The digest is what opm compares with its own before it serves, unless a flag turns that off: FNV-1a, 64 bits, of the catalog
// and the cache. That of opm-json covers the bytes, names and modes of all files below /configs and of the cache; that of
// opm-pogreb covers the content of all blobs and all entries of the database, wherever and with whatever modes they lie.
//
// All bytes are a function of the catalog. That is why the database is not written with opm's library, akrylysov/pogreb: it
// takes a random seed and opm fills it in random order, so that no two builds would have the same digest. The tests read
// with that library what is written here.
// The work takes the memory of the largest package, and a temporary file as large as the cache.
package opmcache
