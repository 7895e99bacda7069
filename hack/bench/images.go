package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bare are the flags that omit what the Containerfile "FROM scratch, ADD configs" lacks.
var bare = []string{"--server", "none", "--cache", "none"}

func (b *bench) layout() string { return filepath.Join(b.dir, "layout") }

// build returns the command that builds an image of the catalog without the layer cache.
func (b *bench) build(catalog, compression string, flags ...string) command {
	args := append([]string{b.bindery, "-q", "build", "catalog", catalog, "-t", "localhost/bench/catalog:v1",
		"--output", "oci:" + b.layout() + ":v1", "--compression", compression, "--no-cache"}, flags...)
	return command{args: args, before: removing(b.layout())}
}

// images measures building the catalog's image into an OCI layout: once with the content of a build with buildah, and
// once with server and cache, for which buildah gets the same tree.
func (b *bench) images(ctx context.Context) error {
	if err := b.imagesOf(ctx, "build, no server, no cache", bare, "configs", b.in.catalog, 1.2); err != nil {
		return err
	}
	tree := filepath.Join(b.dir, "tree")
	if err := b.unpackImage(ctx, tree); err != nil {
		return fmt.Errorf("unpacking the image for buildah: %w", err)
	}
	return b.imagesOf(ctx, "build, server and cache", nil, "", tree, 1.2)
}

func (b *bench) imagesOf(ctx context.Context, what string, flags []string, name, content string, writes float64) error {
	var sizes [2]int64
	contenders := make([]command, 0, 5)
	for i, compression := range []string{"gzip", "zstd"} {
		c := b.build(b.in.catalog, compression, flags...)
		c.after = func() error { sizes[i] = sizeOf(b.layout()); return nil }
		contenders = append(contenders, c)
	}
	names := []string{what + ", gzip", what + ", zstd"}
	peers, peerNames, err := b.peers(ctx, name, content)
	if err != nil {
		return err
	}
	s, err := median(ctx, b.runs, append(contenders, peers...)...)
	if err != nil {
		return err
	}
	var ref *reference
	switch {
	case len(peers) > 0 && peerNames[0] == bud:
		ref = measuredReference(bud, s[2])
	case name != "":
		ref = buildahBud.here(b.gzip[b.in.catalog].CPU)
	}
	for i, times := range []float64{3, 6} {
		b.add(row{What: names[i], Input: b.catalogName(), Took: s[i], Result: sizes[i], Ref: ref,
			Target: target{Times: times, RSS: 40e6, Writes: writes}})
	}
	for i, peer := range peerNames {
		b.add(row{What: "  " + peer + ", the same content", Input: b.catalogName(), Took: s[2+i]})
	}
	return nil
}

const bud = "buildah bud"

// peers returns commands of installed programs that assemble the same content. The first is buildah bud into its own
// store, the reference of the target; the second also writes an OCI layout, as bindery does.
func (b *bench) peers(ctx context.Context, name, content string) (peers []command, names []string, err error) {
	input := filepath.Join(b.dir, "context")
	if err := removing(input)(); err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(input, 0o755); err != nil {
		return nil, nil, err
	}
	inside := filepath.Join(input, "content")
	if err := os.CopyFS(inside, os.DirFS(content)); err != nil {
		return nil, nil, err
	}
	file := filepath.Join(input, "Containerfile")
	text := fmt.Sprintf(
		"FROM scratch\nADD content /%s\nLABEL operators.operatorframework.io.index.configs.v1=/configs\n", name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, nil, err
	}
	peerOut := filepath.Join(b.dir, "peer")
	if path, err := exec.LookPath("buildah"); err == nil {
		store := filepath.Join(b.dir, "store")
		base := []string{path, "--root", store, "--runroot", store + "-run"}
		build := append(append([]string{}, base...), "bud", "-q", "--no-cache", "-f", file, "-t", "bench:v1", input)
		push := append(append([]string{}, base...), "push", "-q", "bench:v1", "oci:"+peerOut+":v1")
		env := []string{"STORAGE_DRIVER=vfs"}
		fresh := removing(store, store+"-run", peerOut)
		one := command{args: build, env: env, before: fresh}
		if _, err := one.once(ctx); err != nil {
			fmt.Println("buildah does not run here, so its recorded time is taken by proportion:", err)
		} else {
			both := command{args: []string{"sh", "-c", quoted(build...) + " && " + quoted(push...)}, env: env,
				before: fresh}
			peers, names = append(peers, one, both), append(names, bud, bud+" and push to oci:")
		}
	} else {
		fmt.Println("buildah is not installed, so its recorded time is taken by proportion")
	}
	if path, err := exec.LookPath("umoci"); err == nil && name != "" {
		image := peerOut + ":v1"
		script := strings.Join([]string{quoted(path, "init", "--layout", peerOut),
			quoted(path, "new", "--image", image),
			quoted(path, "insert", "--rootless", "--image", image, inside, "/"+name),
			quoted(path, "config", "--image", image, "--config.label",
				"operators.operatorframework.io.index.configs.v1=/configs")}, " && ")
		peers = append(peers, command{args: []string{"sh", "-c", script}, before: removing(peerOut)})
		names = append(names, "umoci, four commands")
	}
	return peers, names, nil
}

// unpackImage extracts the whole image, including server and cache, as input for a peer.
func (b *bench) unpackImage(ctx context.Context, tree string) error {
	if _, err := b.build(b.in.catalog, "gzip").once(ctx); err != nil {
		return err
	}
	return b.unpackLayout(tree)
}

// unpackLayout extracts the image that was built last.
func (b *bench) unpackLayout(tree string) error {
	var index, manifest struct {
		Manifests []struct{ Digest string }
		Layers    []struct{ Digest string }
	}
	if err := readJSON(filepath.Join(b.layout(), "index.json"), &index); err != nil {
		return err
	}
	if err := readJSON(b.blob(index.Manifests[0].Digest), &manifest); err != nil {
		return err
	}
	for _, layer := range manifest.Layers {
		if err := b.unpackLayer(layer.Digest, tree); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) unpackLayer(digest, tree string) error {
	blob, err := os.Open(b.blob(digest))
	if err != nil {
		return err
	}
	defer blob.Close()
	plain, err := gzip.NewReader(blob)
	if err != nil {
		return err
	}
	if _, err := extract(plain, tree); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("layer %s: %w", digest, err)
	}
	return nil
}

func (b *bench) blob(digest string) string {
	return filepath.Join(b.layout(), "blobs", strings.Replace(digest, ":", "/", 1))
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
