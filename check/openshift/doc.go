// Package openshift knows the versions of OpenShift: the Kubernetes in each, for which of them organizations have an
// index of operators, and which of them a bundle says that it is for.
package openshift
