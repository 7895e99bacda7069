// Package appregistry reads and writes package manifests: the directories in which operators were published before
// bundle images existed.
//
//	FOLDER/
//	  PACKAGE/
//	    package.yaml                     name, channels with the bundle at their head, default channel
//	    VERSION/                         the manifests of one bundle, among them its ClusterServiceVersion
//
// The reader also accepts other layouts: a bundle is a file with a ClusterServiceVersion together with the other files
// in its directory, wherever that is, and a package manifest is any file with a packageName. The upgrade edges are
// those that the ClusterServiceVersions declare, followed from the head of each channel.
//
//	fs.FS ──scan──> ClusterServiceVersions, package manifests ──graph──> channels ──Read──> bundles ──> blobs
//
// Input is considered hostile: files, directories, channels and edges are limited, and all written names stay in one
// directory. Symbolic links are followed as the file system does; an [os.Root] does not follow those that leave its
// directory.
package appregistry
