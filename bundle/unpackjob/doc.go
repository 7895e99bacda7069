// Package unpackjob describes the objects with which the Operator Lifecycle Manager, version 0, unpacks a bundle image on a
// cluster: a ConfigMap for the bundle's content, a Job whose pod writes it, and the Role and RoleBinding that allow that.
// [New] returns them. All four have one name, which is a function of the image reference.
package unpackjob
