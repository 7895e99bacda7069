// Package unpackjob describes the objects with which OLM v0 unpacks a bundle image on a cluster: a ConfigMap for the
// bundle, a Job whose pod fills it, and the Role and RoleBinding that permit this. All four have the same name, which
// is derived from the image reference.
package unpackjob
