// Package indeximage builds images of catalogs from other sources: of edited indexes and of migrated catalogs.
//
//	image, database, directory ──Open──> Index ──Apply(change.Edit)──> Build ────────> build.Image
//	migrate.Prepared ───────────────────────────────────────────────> Spec.Migrated ─> build.Image
//
// A Spec has the options that such images have in common; platforms, labels and annotations that are not given come
// from the source. The package prints nothing and copies no images.
package indeximage
