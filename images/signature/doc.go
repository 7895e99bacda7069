// Package signature signs images and verifies signatures and attestations, with keys and without any service.
package signature
