// Package policy evaluates signature policies (containers-policy.json(5)) with the containers image library, for
// [images.ClientOptions]:
//
//	images.NewClient(images.ClientOptions{Policy: policy.Read})
package policy
