// Package edit changes catalogs: [Add], [Remove], [Prune], [Promote], [Merge] and others are functions on the model,
// wherever a catalog comes from. They read and write no files.
//
//	after, account, err := edit.Prune(catalog, []string{"etcd"})
//
// Every edit takes a catalog and returns another one with an [Account] of what it did. The given catalog is not modified,
// but the two share memory: neither may be changed in place while the other is in use. An edit is done completely or not at
// all: with an error, no catalog is returned. The error is an [*Error] with every problem of the batch. All functions are
// safe for concurrent use on the same catalog, and take time linear in what they examine.
//
// Packages outside an edit stay unchanged, even if they are invalid. Changed packages are valid afterwards, by
// [declcfg.Catalog.Validate].
package edit
