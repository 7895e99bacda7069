// Package generate generates the metadata of a bundle from its manifests: annotations.yaml, and bundle.Dockerfile for
// building the image with other tools.
//
//	manifests/ ──DetectMediaType──┐
//	package.yaml above ──Infer────┼─> Metadata ──Annotations──> metadata/annotations.yaml
//	the user's values ────────────┘        └─────Dockerfile───> bundle.Dockerfile
//
// The files have the same bytes as those of opm's "alpha bundle generate".
package generate
