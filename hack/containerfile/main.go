// Command containerfile compares two images in OCI layouts, "oci:DIR:TAG": the final state of all files (kind, mode,
// owner, link, bytes), and the configuration except for times and the label with buildah's version. It prints the
// differences and fails if there are any. hack/containerfile.sh uses it.
package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: containerfile IMAGE IMAGE")
		os.Exit(2)
	}
	var all [2]map[string]string
	for i, name := range os.Args[1:] {
		var err error
		if all[i], err = describe(context.Background(), name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	names := maps.Clone(all[0])
	maps.Copy(names, all[1])
	status := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if all[0][name] != all[1][name] {
			fmt.Printf("%s: %s | %s\n", name, all[0][name], all[1][name])
			status = 1
		}
	}
	os.Exit(status)
}

// describe returns every compared item of an image by name.
func describe(ctx context.Context, name string) (map[string]string, error) {
	client, err := images.NewClient(images.ClientOptions{NoPolicy: true})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	img, err := client.Image(ctx, name, v1.Platform{})
	if err != nil {
		return nil, err
	}
	defer img.Close()
	all := map[string]string{}
	r := images.NewLayerReader(images.Limits{})
	for n := range img.Layers {
		layer := map[string]string{}
		if _, err := r.Read(ctx, img, n, func(name string, h *tar.Header, content io.Reader) error {
			return add(all, layer, name, h, content)
		}); err != nil {
			return nil, err
		}
		for name, is := range layer {
			if !strings.HasPrefix(is, "dir") {
				hide(all, name+"/")
			}
		}
		maps.Copy(all, layer)
	}
	c := img.Config.Config
	delete(c.Labels, "io.buildah.version")
	for what, v := range map[string]any{
		"env": c.Env, "cmd": c.Cmd, "entrypoint": c.Entrypoint, "user": c.User, "workdir": c.WorkingDir,
		"labels": c.Labels, "volumes": c.Volumes,
		"ports": c.ExposedPorts, "stopsignal": c.StopSignal, "author": img.Config.Author,
		"platform": img.Config.Platform,
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		if s := string(text); s != "null" && s != "{}" && s != "[]" {
			all["config "+what] = s
		}
	}
	return all, nil
}

// add applies an entry of a layer.
func add(all, layer map[string]string, name string, h *tar.Header, content io.Reader) error {
	if name == "." {
		return nil
	}
	dir, base := path.Split(name)
	if hidden, ok := strings.CutPrefix(base, ".wh."); ok {
		if hidden == ".wh..opq" {
			hide(all, dir)
			return nil
		}
		delete(all, dir+hidden)
		hide(all, dir+hidden+"/")
		return nil
	}
	is := fmt.Sprintf("%o %d:%d", h.Mode&0o7777, h.Uid, h.Gid)
	switch h.Typeflag {
	case tar.TypeDir:
		is = "dir " + is
	case tar.TypeSymlink:
		is = fmt.Sprintf("link %d:%d %s", h.Uid, h.Gid, h.Linkname)
	case tar.TypeLink:
		is = layer[path.Clean(h.Linkname)]
	default:
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return err
		}
		is += fmt.Sprintf(" %x", sum.Sum(nil)[:6])
	}
	layer[name] = is
	return nil
}

// hide removes everything below a directory.
func hide(all map[string]string, below string) {
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.HasPrefix(name, below) })
}
