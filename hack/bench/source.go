package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
)

// The release that is mirrored: so many components, and images beside it.
const (
	mirroredComponents = 125
	mirroredImages     = 20
)

// object is JSON.
type object = map[string]any

// mirrorSource fills a registry with a release like those of OpenShift: components that share layers, all in one
// repository, each with a tagged signature; and other images, each in a repository of its own.
type mirrorSource struct {
	ctx  context.Context
	host string
	sent map[string]bool
	size int64
	err  error
}

// fill returns the image set of the content. Errors are kept until the end.
func (s *mirrorSource) fill() (set string, err error) {
	const components, releases = "openshift-release-dev/ocp-v4.0-art-dev", "openshift-release-dev/ocp-release"
	base := s.layer(1, 5<<20)
	var tags []object
	for i := range uint64(mirroredComponents) {
		layers := [][]byte{base, s.layer(10+i%5, 1<<20), s.layer(100+i, 200<<10+int64(i%7)*130<<10), s.layer(1000+i, 30<<10)}
		d := s.image(components, "", object{}, layers...)
		s.sign(components, d)
		tags = append(tags, object{"name": fmt.Sprintf("component-%03d", i),
			"from": object{"kind": "DockerImage", "name": s.host + "/" + components + "@" + d}})
	}
	list, err := json.Marshal(object{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1",
		"metadata": object{"name": "4.99.0"}, "spec": object{"tags": tags}})
	if err != nil {
		return "", err
	}
	release := s.image(releases, "4.99.0-x86_64", object{"io.openshift.release": "4.99.0"},
		base, packed("release-manifests/image-references", list))
	s.sign(releases, release)
	set = "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  platform:\n    release: " +
		s.host + "/" + releases + "@" + release + "\n  additionalImages:\n"
	for i := range uint64(mirroredImages) {
		name := fmt.Sprintf("acme/image-%02d", i)
		s.image(name, "v1", object{}, s.layer(10000+i/4, 600<<10), s.layer(20000+i, 40<<10))
		set += "  - name: " + s.host + "/" + name + ":v1\n"
	}
	return set, s.err
}

// layer is a layer of bytes that depend on its number and do not compress.
func (s *mirrorSource) layer(number uint64, size int64) []byte {
	content := make([]byte, size)
	var seed [32]byte
	seed[0], seed[1], seed[2] = byte(number), byte(number>>8), byte(number>>16)
	_, _ = rand.NewChaCha8(seed).Read(content)
	return packed(fmt.Sprintf("usr/share/file-%d", number), content)
}

// packed is a layer with one file. Writes to memory do not fail.
func packed(name string, content []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.NoCompression)
	t := tar.NewWriter(z)
	_ = t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
	_, _ = t.Write(content)
	_, _ = t.Close(), z.Close()
	return out.Bytes()
}

// image sends an image under a tag or its digest, which it returns.
func (s *mirrorSource) image(repository, tag string, labels object, layers ...[]byte) string {
	var list, ids []any
	for _, l := range layers {
		list = append(list, s.blob(repository, "application/vnd.oci.image.layer.v1.tar+gzip", l))
		z, err := gzip.NewReader(bytes.NewReader(l))
		s.keep(err)
		sum := sha256.New()
		_, err = io.Copy(sum, z)
		s.keep(err)
		ids = append(ids, fmt.Sprintf("sha256:%x", sum.Sum(nil)))
	}
	config, err := json.Marshal(object{"architecture": "amd64", "os": "linux", "config": object{"Labels": labels},
		"rootfs": object{"type": "layers", "diff_ids": ids}})
	s.keep(err)
	return s.manifest(repository, tag, s.blob(repository, "application/vnd.oci.image.config.v1+json", config), list)
}

// sign sends something that stands for a signature, under the tag of signatures.
func (s *mirrorSource) sign(repository, digest string) {
	layer := s.blob(repository, "application/vnd.dev.cosign.simplesigning.v1+json", []byte(`{"critical":{"image":{"docker-manifest-digest":"`+digest+`"}}}`))
	layer["annotations"] = object{"dev.cosignproject.cosign/signature": "c2lnbmF0dXJl"}
	config := s.blob(repository, "application/vnd.oci.image.config.v1+json", []byte(`{"of":"`+digest+`"}`))
	s.manifest(repository, "sha256-"+digest[len("sha256:"):]+".sig", config, []any{layer})
}

func (s *mirrorSource) manifest(repository, tag string, config object, layers []any) string {
	text, err := json.Marshal(object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": layers})
	s.keep(err)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(text))
	if tag == "" {
		tag = digest
	}
	s.put("/v2/"+repository+"/manifests/"+tag, "application/vnd.oci.image.manifest.v1+json", text)
	return digest
}

// blob sends a blob, once to each repository, and returns its descriptor.
func (s *mirrorSource) blob(repository, mediaType string, content []byte) object {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	d := object{"mediaType": mediaType, "digest": digest, "size": len(content)}
	if s.sent[repository+digest] || s.err != nil {
		return d
	}
	if !s.sent[digest] {
		s.size += int64(len(content))
	}
	s.sent[repository+digest], s.sent[digest] = true, true
	resp, err := http.Post("http://"+s.host+"/v2/"+repository+"/blobs/uploads/", "", nil)
	if err != nil {
		s.keep(err)
		return d
	}
	resp.Body.Close()
	at, err := resp.Location()
	if err != nil {
		s.keep(err)
		return d
	}
	query := at.Query()
	query.Set("digest", digest)
	s.put(at.Path+"?"+query.Encode(), "application/octet-stream", content)
	return d
}

func (s *mirrorSource) put(path, mediaType string, content []byte) {
	if s.err != nil {
		return
	}
	to, err := url.Parse("http://" + s.host + path)
	if err != nil {
		s.keep(err)
		return
	}
	q, err := http.NewRequestWithContext(s.ctx, http.MethodPut, to.String(), bytes.NewReader(content))
	if err != nil {
		s.keep(err)
		return
	}
	q.Header.Set("Content-Type", mediaType)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		s.keep(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		s.keep(fmt.Errorf("PUT %s: %s", path, resp.Status))
	}
}

// keep keeps the first error.
func (s *mirrorSource) keep(err error) {
	if s.err == nil {
		s.err = err
	}
}
