// Package edit changes catalogs: functions on the model, whichever way a catalog came in and wherever it goes. It never
// reads or writes anything.
//
// Every edit takes a catalog and returns another one with an [Account] of what it did. The catalog that was given is not
// modified; the two share memory, so neither is to be changed in place while the other is in use. An edit is done as a
// whole or not at all: if there is an error, no catalog is returned. The error is an [*Error] with every problem of the
// whole batch. All functions are safe for concurrent use on the same catalog, and take time linear in what they look at.
//
// Packages that an edit does not concern stay as they are, even if they are broken. Those that it changes are valid
// afterwards, by [declcfg.Catalog.Validate].
package edit
