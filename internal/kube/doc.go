// Package kube is the little that is asked of a Kubernetes cluster: to read a ConfigMap and to change it.
package kube
