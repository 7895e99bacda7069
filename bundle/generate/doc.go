// Package generate generates the metadata of a bundle from its manifests: annotations.yaml, and bundle.Dockerfile for
// building the image with other tools.
//
//	manifests/ ──media type───────┐
//	package.yaml above ──inferred─┼─> Metadata ──Annotations──> metadata/annotations.yaml
//	the user's values ────────────┘        └─────Dockerfile───> bundle.Dockerfile
//
// [Generate] writes the files. [OpenSource] finds the parts of a bundle for package build and writes nothing.
//
// The files have the same bytes as those of opm's "alpha bundle generate".
package generate
