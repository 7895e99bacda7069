// Package unpackjob describes the objects with which OLM v0 unpacks a bundle image on a cluster: a ConfigMap for the
// bundle, a Job whose pod fills it, and the Role, ServiceAccount and RoleBinding that permit this. All have the same
// name, which is derived from the image reference. What they have besides depends on the release of OLM.
package unpackjob
