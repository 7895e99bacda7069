package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// world is a source registry that is being made.
type world struct {
	storage, host string
	large         int
	divide        int64
	made          map[string]string // names by the part after the host
	layers        map[string]blob
	blobs         int
	bytes         int64
}

// object is JSON.
type object = map[string]any

// image makes the image of a name, and returns the name that it has.
func (w *world) image(ref string) (string, error) {
	_, path, found := strings.Cut(ref, "/")
	if !found {
		return "", fmt.Errorf("%q has no host", ref)
	}
	if name, there := w.made[path]; there {
		return name, nil
	}
	named, digest, _ := strings.Cut(path, "@")
	repository, tag, _ := strings.Cut(named, ":")
	n := number(path)
	arches := []string{"amd64"}
	if n%8 == 0 {
		arches = []string{"amd64", "arm64", "ppc64le", "s390x"}[:2+n/8%3]
	}
	kinds := kindsOf(n)
	var top blob
	var members []object
	for _, arch := range arches {
		text, err := w.single(repository, path, arch, kinds)
		if err != nil {
			return "", err
		}
		if top, err = w.manifest(repository, text); err != nil {
			return "", err
		}
		members = append(members, object{"mediaType": kinds.manifest, "digest": "sha256:" + top.hex, "size": top.size,
			"platform": object{"os": "linux", "architecture": arch}})
	}
	if len(members) > 1 {
		var err error
		top, err = w.manifest(repository, object{"schemaVersion": 2, "mediaType": kinds.index, "manifests": members})
		if err != nil {
			return "", err
		}
	}
	name := w.host + "/" + repository
	if tag != "" {
		name += ":" + tag
	}
	if digest != "" {
		name += "@sha256:" + top.hex
	} else if err := w.tag(repository, tag, top); err != nil {
		return "", err
	}
	w.made[path] = name
	if n%16 != 1 {
		return name, nil
	}
	return name, w.signature(repository, top)
}

// kinds are the media types of an image.
type kinds struct{ index, manifest, config, layer string }

func kindsOf(n uint64) kinds {
	if n%5 == 0 {
		const docker = "application/vnd.docker."
		return kinds{docker + "distribution.manifest.list.v2+json", docker + "distribution.manifest.v2+json",
			docker + "container.image.v1+json", docker + "image.rootfs.diff.tar"}
	}
	const oci = "application/vnd.oci.image."
	return kinds{oci + "index.v1+json", oci + "manifest.v1+json", oci + "config.v1+json", oci + "layer.v1.tar"}
}

// single is the manifest of an image for one platform. It has a layer of the images of its owner, one of its
// repository, and one of its own.
func (w *world) single(repository, name, arch string, k kinds) (object, error) {
	owner, _, _ := strings.Cut(repository, "/")
	owner += " for " + arch
	own := name + " for " + arch
	n := number(own)
	size := int64(4<<10 + n%(400<<10))
	if n%uint64(w.large) == 0 {
		size = int64(50<<20 + n%(150<<20))
	}
	var ids, layers []any
	for _, l := range []struct {
		name string
		size int64
	}{
		{"owner " + owner, int64(200<<10 + number(owner)%(2<<20))},
		{"repository " + repository + " for " + arch, int64(64<<10 + number(repository)%(1<<20))},
		{"image " + own, size},
	} {
		b, err := w.layer(repository, l.name, l.size)
		if err != nil {
			return nil, err
		}
		ids = append(ids, "sha256:"+b.hex)
		layers = append(layers, object{"mediaType": k.layer, "digest": "sha256:" + b.hex, "size": b.size})
	}
	config, err := w.json(repository, object{"os": "linux", "architecture": arch,
		"config": object{"Labels": object{"name": name}}, "rootfs": object{"type": "layers", "diff_ids": ids}})
	if err != nil {
		return nil, err
	}
	return object{"schemaVersion": 2, "mediaType": k.manifest, "layers": layers,
		"config": object{"mediaType": k.config, "digest": "sha256:" + config.hex, "size": config.size}}, nil
}

// signature adds what looks like cosign's signature of an image.
func (w *world) signature(repository string, of blob) error {
	k := kindsOf(1)
	payload, err := w.json(repository, object{"critical": object{"image": object{"docker-manifest-digest": "sha256:" + of.hex}}})
	if err != nil {
		return err
	}
	config, err := w.json(repository, object{"os": "", "architecture": "", "config": object{},
		"rootfs": object{"type": "layers", "diff_ids": []string{"sha256:" + payload.hex}}})
	if err != nil {
		return err
	}
	top, err := w.manifest(repository, object{"schemaVersion": 2, "mediaType": k.manifest,
		"config": object{"mediaType": k.config, "digest": "sha256:" + config.hex, "size": config.size},
		"layers": []object{{"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "size": payload.size,
			"digest": "sha256:" + payload.hex, "annotations": object{"dev.cosignproject.cosign/signature": "bm9uZQ=="}}}})
	if err != nil {
		return err
	}
	return w.tag(repository, "sha256-"+of.hex+".sig", top)
}

// json keeps a document as a blob of a repository.
func (w *world) json(repository string, document object) (blob, error) {
	return w.document(repository, "_layers/sha256/", document)
}

// manifest keeps a manifest in a repository.
func (w *world) manifest(repository string, document object) (blob, error) {
	return w.document(repository, "_manifests/revisions/sha256/", document)
}

func (w *world) document(repository, links string, document object) (blob, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return blob{}, err
	}
	b, err := w.keep(bytes.NewReader(text))
	if err != nil {
		return blob{}, err
	}
	return b, w.link(repository, links+b.hex, b)
}

// tag gives a manifest a tag.
func (w *world) tag(repository, tag string, b blob) error {
	if err := w.link(repository, "_manifests/tags/"+tag+"/current", b); err != nil {
		return err
	}
	return w.link(repository, "_manifests/tags/"+tag+"/index/sha256/"+b.hex, b)
}
