// Package unpackjob describes the objects with which the Operator Lifecycle Manager, version 0, unpacks a bundle image on a
// cluster: a ConfigMap that the bundle ends up in, a Job whose pod puts it there, and the Role and RoleBinding that let it.
// All four have one name, which is a function of the image reference.
package unpackjob
