// Package indeximage builds images of catalogs that come from elsewhere: of indexes after an edit, and of migrated
// catalogs.
//
//	image, database, directory ──Open──> Index ──Apply(change.Edit)──> Build ────────> build.Image
//	migrate.Prepared ───────────────────────────────────────────────> Spec.Migrated ─> build.Image
//
// A Spec says what such images have in common; the source decides the platforms, labels and annotations that are not
// given. Nothing is printed, and nothing is copied anywhere.
package indeximage
