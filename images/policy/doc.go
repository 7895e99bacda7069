// Package policy evaluates signature policies (containers-policy.json(5)) with the containers image library, for
// [images.ClientOptions]:
//
//	images.NewClient(images.ClientOptions{Policy: policy.Read})
//
// The library needs a build tag: "go build -tags containers_image_openpgp" verifies signatures of GPG in Go. Without it
// GPGME is needed, a library in C, with its headers and cgo. A program that does not import this package needs no tag, and
// evaluates no policies: on a machine with a policy.json it sets ClientOptions.NoPolicy.
package policy
