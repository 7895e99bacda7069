package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/archive"
	"github.com/operator-bindery/bindery/internal/platform"
)

// Inspect reports what the images of a survey declare. It reads no layer.
func Inspect(s *images.Survey) *Report {
	first := s.Images[0]
	r := &Report{
		Name: s.Name, Reference: first.Reference(), Source: s.Source, Digest: s.Digest, MediaType: s.MediaType,
		Annotations: s.Annotations,
		Packages:    []Package{}, Caches: []Cache{},
	}
	if r.Source == strings.TrimPrefix(r.Name, "docker://") {
		r.Source = ""
	}
	r.Kind, r.Path = kindOf(first.Config.Config.Labels)
	listed := map[digest.Digest][]int{} // the indexes in r.Layers by digest
	for _, i := range s.Images {
		r.Images = append(r.Images, imageOf(i))
		met := map[digest.Digest]int{} // the number of times that this image has the layer so far
		for n, layer := range declaredLayers(i.Image) {
			l := i.Layers[n]
			r.Built = r.Built || layer.ours()
			at := listed[l.Digest]
			if nth := met[l.Digest]; nth < len(at) {
				met[l.Digest]++
				// The same layer may be in the base of one image and on top in that of another platform: the latter's
				// claim is reported.
				if k := &r.Layers[at[nth]]; layer.ours() && k.Kind == string(build.LayerBase) {
					k.Kind, k.Packages, k.Key = layer.kind, layer.packages, layer.key
				}
				continue
			}
			met[l.Digest]++
			listed[l.Digest] = append(at, len(r.Layers))
			if len(at) == 0 {
				r.Size += l.Size
			}
			r.Layers = append(r.Layers, Layer{
				Digest: l.Digest, DiffID: i.Config.RootFS.DiffIDs[n], MediaType: l.MediaType, Size: l.Size,
				Kind: layer.kind, Packages: layer.packages, Key: layer.key,
			})
		}
		for _, c := range cacheDirs(i.Config.Config) {
			if !slices.ContainsFunc(r.Caches, func(k Cache) bool { return k.Path == "/"+c }) {
				r.Caches = append(r.Caches, Cache{Path: "/" + c, Format: UnknownFormat, State: CacheNamed})
			}
		}
	}
	for _, o := range s.Others {
		r.Others = append(r.Others,
			Entry{Digest: o.Digest, MediaType: o.MediaType, ArtifactType: o.ArtifactType, Size: o.Size})
	}
	r.Packages = packagesOf(r.Layers)
	return r
}

// kindOf derives the kind of an image and the path of its content from the labels.
func kindOf(labels map[string]string) (Kind, string) {
	for _, k := range []struct {
		kind  Kind
		label string
	}{{Database, build.DatabaseLabel}, {Catalog, build.ConfigsLabel}} {
		if at, ok := labels[k.label]; ok {
			return k.kind, at
		}
	}
	// A bundle of plain manifests may lack the package label.
	for _, label := range []string{bundle.AnnotationPackage, bundle.AnnotationManifests} {
		if _, ok := labels[label]; ok {
			return Bundle, labels[bundle.AnnotationManifests]
		}
	}
	return Unknown, ""
}

func imageOf(i images.SurveyedImage) Image {
	out := Image{
		Platform: platformName(i.Platform), Digest: i.Digest, MediaType: i.MediaType, Config: i.ConfigDescriptor.Digest,
		Created: i.Config.Created,
		Labels:  i.Config.Config.Labels, Annotations: i.Annotations, User: i.Config.Config.User,
		Entrypoint: i.Config.Config.Entrypoint, Cmd: i.Config.Config.Cmd,
		Layers: []digest.Digest{},
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	for _, l := range i.Layers {
		out.Size += l.Size
		out.Layers = append(out.Layers, l.Digest)
		switch c := compressionOf(l.MediaType); {
		case out.Compression == "":
			out.Compression = c
		case out.Compression != c:
			out.Compression = "mixed"
		}
	}
	return out
}

// compressionOf returns the compression that the media type of a layer names.
func compressionOf(mediaType string) string {
	switch {
	case strings.HasSuffix(mediaType, "gzip"):
		return "gzip"
	case strings.HasSuffix(mediaType, "zstd"):
		return "zstd"
	}
	return "none"
}

// platformName formats a platform as in --platform.
func platformName(p v1.Platform) string {
	p.OS, p.Architecture = cmp.Or(p.OS, "?"), cmp.Or(p.Architecture, "?")
	return platform.Name(p)
}

func packagesOf(ls []Layer) []Package {
	in := map[string][]digest.Digest{}
	for _, l := range ls {
		for _, p := range l.Packages {
			if !slices.Contains(in[p], l.Digest) {
				in[p] = append(in[p], l.Digest)
			}
		}
	}
	out := []Package{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		out = append(out, Package{Name: name, Layers: in[name]})
	}
	return out
}

// cacheDirs returns the cache directories that the image's command line names, relative to the root.
func cacheDirs(c v1.ImageConfig) []string {
	var out []string
	words := slices.Concat(c.Entrypoint, c.Cmd)
	for n, w := range words {
		at, ok := strings.CutPrefix(w, "--cache-dir=")
		if !ok && w == "--cache-dir" && n+1 < len(words) {
			at, ok = words[n+1], true
		}
		if at = clean(at); ok && at != "" && len(out) < 10 && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

// clean makes a path relative to the image's root; empty if it is the root or leads out of it.
func clean(at string) string {
	name, err := archive.CleanPath(at)
	if err != nil {
		return ""
	}
	return name
}
