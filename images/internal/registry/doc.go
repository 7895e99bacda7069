// Package registry is a client of registries for the OCI distribution specification: [Client] reads images,
// [Repository] writes them.
//
// It replaces the docker transport of the containers image library, which has no hook for redirects, token services and
// retries, opens a connection for each image, and cannot resume a transfer. In a static program that one also forgets
// where blobs are, so that it never mounts them. What is configured on a machine counts as it does for podman:
// registries.conf is read by the library, and credentials are found in the files and helpers that podman and docker
// use.
//
// The client decides three things that the specification leaves open:
//
//   - Credentials go to the host that they are configured for, and to the token service that it names, unless that
//     service is at an address inside a network that the registry is not in. A redirect takes no credentials along.
//   - Requests that fail for a moment are repeated with growing pauses, and transfers that break off continue where
//     they stopped, if the registry supports it.
//   - A push writes blobs, then manifests, then tags. It reads the manifest back before it writes a tag, so that no
//     tag names an incomplete image.
package registry
