// Package edit changes catalogs: it has functions on the model, independent of the form in which a catalog is stored.
// It never reads or writes files.
//
// Every edit takes a catalog and returns a new one with an [Account] of the changes. The given catalog is not modified;
// the two share memory, so neither may be changed in place while the other is in use. An edit is applied completely or
// not at all: with an error, no catalog is returned. The error is an [*Error] with every problem of the whole batch.
// All functions are safe for concurrent use on the same catalog, and take time linear in their input.
//
// Packages that an edit does not change stay as they are, even if they are invalid. Changed packages are valid
// afterwards according to [declcfg.Catalog.Validate].
package edit
