// Package filetx changes several files of a directory as one transaction.
//
//	Begin ──> Create a file each ──> Commit ──────────────> Close
//	  │        └── staged, hidden     ├── journal, synced
//	  │                               ├── a rename each
//	  │                               └── "committed"
//	  └── Recover: rolls back what a killed process has not committed
//
// New files are written to a staging directory within the directory, which is on the same file system. Its ignore
// file hides them from readers of catalogs; a temporary file beside its target would be read as a part of the
// catalog. Commit writes a journal, keeps a hard link to each old file in the staging directory, and renames the new
// files over the old ones. If anything fails, it rolls back. If the process is killed before the journal
// is marked as committed, Recover brings the old files back. A commit that replaces one file needs no journal,
// because it is one rename.
//
// What a reader may see: each file is the old or the new one, never a part of one. While Commit renames, and after a
// kill until Recover, some files may be old and others new. [Await] keeps readers away from such a directory. Where
// the file system has no hard links, a name may be missing for a moment.
//
// The caller holds a lock of the directory from Recover to Close.
package filetx
