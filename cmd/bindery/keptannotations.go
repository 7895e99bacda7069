package main

import (
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// staleAnnotations begin annotations that are about the very manifest they stand in: when and of what it was made, and what
// tools noted for themselves.
var staleAnnotations = [...]string{
	v1.AnnotationBaseImageDigest, v1.AnnotationBaseImageName, v1.AnnotationCreated, v1.AnnotationRefName,
	"com.docker.", "vnd.docker.", "containerd.io/", "io.containerd.", "io.buildah.", "io.podman.", "io.github.containers.", "dev.cosign", "dev.sigstore.",
}

// keptAnnotations leaves out what is not true of an image that is made anew.
func keptAnnotations(all map[string]string) map[string]string {
	out := map[string]string{}
next:
	for key, value := range all {
		for _, stale := range staleAnnotations {
			if strings.HasPrefix(key, stale) {
				continue next
			}
		}
		out[key] = value
	}
	return out
}
