// Package appregistry reads and writes package manifests: the directories in which operators were published before there
// were bundle images.
//
//	FOLDER/
//	  PACKAGE/
//	    package.yaml                     name, channels with the bundle at their head, default channel
//	    VERSION/                         the manifests of one bundle, among them its ClusterServiceVersion
//
// A reader does not need just this form: a bundle is a file with a ClusterServiceVersion together with what else lies in
// its directory, wherever that is, and a package is any file with a packageName. The upgrade edges are those that the
// ClusterServiceVersions wish for, from the head of each channel downward.
//
//	fs.FS ──scan──> ClusterServiceVersions, package manifests ──graph──> channels ──Read──> bundles ──> blobs
//
// What is read is hostile until shown otherwise: files, directories, channels and edges have limits, and all names that
// are written are those of one directory. Links are followed as far as the file system does that; one that [os.Root]
// gives does not leave its directory.
package appregistry
