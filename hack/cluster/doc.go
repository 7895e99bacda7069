// Package cluster asks a real API server whether it takes every object that the program writes for clusters.
//
// Its tests start etcd and kube-apiserver on loopback, apply the definitions of the kinds that clusters with OLM have, and
// create each object in a server-side dry run in which unknown fields are errors. Where the program predicts what a server
// says (check, resolve), the prediction is compared with the answer. No controller runs: nothing is scheduled, no
// certificate is made, no image is pulled.
//
// The module is of its own, as kube-apiserver needs other versions of modules than the program. "make cluster" runs it;
// $BINDERY names the program, $KUBE_APISERVER the server.
package cluster
