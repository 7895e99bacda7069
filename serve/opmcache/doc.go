// Package opmcache writes the caches that opm's own server reads, for images that opm serves, and checks them ([Check]).
// There are two formats:
//
//	opm-json    tmp/cache/cache/<package>_<channel>_<bundle>.json   one file per entry, in the layer of the package
//	            tmp/cache/cache/metas/<schema>/<package>/*.json     blobs of custom schemas, likewise
//	            tmp/cache/cache/packages.json                       the index, in a layer above all packages
//	            tmp/cache/digest                                    likewise
//	opm-pogreb  tmp/cache/pogreb.v1/db/*                            one database, in a layer above all packages
//	            tmp/cache/pogreb.v1/digest                          likewise
//
// [JSONEntries] makes the files of a package, [JSONTop] and [PogrebTop] those of the whole catalog. [Refresh] rewrites a
// cache on disk.
//
// opm compares the digest with its own before it serves, unless a flag turns that off: FNV-1a, 64 bits, of the catalog
// and the cache. That of opm-json covers the bytes, names and modes of all files below /configs and of the cache; that of
// opm-pogreb covers the content of all blobs and of all entries of the database, whatever their files and modes are.
//
// All bytes are a function of the catalog. opm's library for the database, akrylysov/pogreb, uses a random seed, and opm
// fills the database in random order, so that two builds would differ: the writer here is the project's own, and tests
// read its output with that library. Writing takes the memory of the largest package, and a temporary file of the size of
// the cache.
package opmcache
