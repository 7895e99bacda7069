// Package kube reads and updates ConfigMaps of a Kubernetes cluster.
package kube
