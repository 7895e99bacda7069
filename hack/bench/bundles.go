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
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bundleCount is the number of bundle images rendered in one command.
const bundleCount = 250

// opmBundle is opm's recorded cost per bundle of adding 50 small bundles to an index in one command from a local
// registry: fetching, unpacking and reading it.
var opmBundle = recorded{"opm, as recorded", 2.07 / 50, 1.66 / 50, 105e6, 0.417}

// image is a bundle image to push to a registry.
type image struct {
	manifest map[string]any
	config   map[string]any
	layers   [][]byte // compressed with gzip
}

// bundles measures rendering bundle images from a local registry: the recorded images, and variants of them with
// distinct layers.
func (b *bench) bundles(ctx context.Context) error {
	program, err := exec.LookPath("docker-registry")
	if err != nil {
		fmt.Println("docker-registry is not installed: bundles from a registry are LEFT OUT")
		return nil
	}
	host, stop, err := startRegistry(ctx, program, filepath.Join(b.dir, "registry"))
	if err != nil {
		return err
	}
	defer stop()
	from, err := b.bundleImages(ctx)
	if err != nil {
		return err
	}
	var refs []string
	var fetched, unpacked int64
	for i := range bundleCount {
		img := from[i%len(from)]
		if i >= len(from) {
			if img, err = img.variant(i); err != nil {
				return err
			}
		}
		ref := fmt.Sprintf("%s/bench/bundle%d:v1", host, i)
		if err := img.push(ctx, ref); err != nil {
			return fmt.Errorf("pushing %s: %w", ref, err)
		}
		refs = append(refs, ref)
		small, large, err := img.onDisk()
		if err != nil {
			return err
		}
		fetched, unpacked = fetched+small, unpacked+large
	}
	cache := filepath.Join(b.dir, "cache")
	tmp := filepath.Join(b.dir, "tmp")
	clean := func() error { return removing(tmp)() }
	empty := func() error {
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			return fmt.Errorf("left behind in the directory for temporary files: %v, %w", left, err)
		}
		return nil
	}
	render := func(flags ...string) command {
		return command{
			args: append(append([]string{b.bindery, "-q", "render", "--use-http"}, flags...), refs...),
			env:  []string{"SEAL=what-seals-the-records", "BINDERY_CACHE_KEY=env://SEAL", "XDG_CACHE_HOME=" + cache, "TMPDIR=" + tmp},
			before: func() error {
				if err := clean(); err != nil {
					return err
				}
				return os.Mkdir(tmp, 0o700)
			},
			after: empty,
		}
	}
	cold := render()
	prepare := cold.before
	cold.before = func() error {
		if err := removing(cache)(); err != nil {
			return err
		}
		return prepare()
	}
	s, err := median(ctx, b.runs, cold, render(), render("--no-cache"))
	if err != nil {
		return err
	}
	ref := opmBundle.here(b.gzip[b.in.catalog].CPU)
	ref.Wall, ref.Least, ref.CPU = ref.Wall*bundleCount, ref.Least*bundleCount, ref.CPU*bundleCount
	input := fmt.Sprintf("%d images, %s MB fetched, %s MB unpacked", bundleCount, mb(fetched), mb(unpacked))
	for i, what := range []string{"render bundles, cold cache", "render bundles, warm cache",
		"render bundles, --no-cache"} {
		// Like opm, a program that stores the image in a layout and unpacks it writes both.
		b.add(row{What: what, Input: input, Took: s[i], Result: fetched + unpacked, Ref: ref,
			Target: target{Times: 10, Writes: 0.25}})
	}
	return nil
}

// startRegistry runs a registry on a free port until stop is called.
func startRegistry(ctx context.Context, program, dir string) (host string, stop func(), err error) {
	host, _, stop, err = startLogging(ctx, program, dir, nil)
	return host, stop, err
}

// startLogging also writes a line of JSON for each request, unless log is nil.
func startLogging(ctx context.Context, program, dir string, log *os.File) (host string, pid int, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", 0, nil, err
	}
	host = l.Addr().String()
	l.Close()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", 0, nil, err
	}
	level := "error"
	if log != nil {
		level = "info"
	}
	config := fmt.Sprintf(
		"version: 0.1\nlog: {level: %s, formatter: json, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}, "+
			"cache: {blobdescriptor: inmemory}}\nhttp: {addr: %q}\n", level, dir, host)
	if err := os.WriteFile(dir+".yml", []byte(config), 0o644); err != nil {
		return "", 0, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, program, "serve", dir+".yml")
	if log != nil {
		cmd.Stderr = log
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return "", 0, nil, err
	}
	stop = func() { cancel(); _ = cmd.Wait() }
	for deadline := time.Now().Add(20 * time.Second); ; {
		resp, err := http.Get("http://" + host + "/v2/")
		if err == nil {
			resp.Body.Close()
			return host, cmd.Process.Pid, stop, nil
		}
		if time.Now().After(deadline) {
			stop()
			return "", 0, nil, fmt.Errorf("the registry does not answer: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// bundleImages returns the recorded bundle images of real operators.
func (b *bench) bundleImages(ctx context.Context) (all []image, err error) {
	layout := filepath.Join(b.dir, "bundles")
	recorded, err := b.recorded(ctx)
	if err != nil {
		return nil, err
	}
	if layout, err = untar(filepath.Join(recorded, "images", "dev-images.oci.tar"), layout); err != nil {
		return nil, err
	}
	var index struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	if err := readJSON(filepath.Join(layout, "index.json"), &index); err != nil {
		return nil, err
	}
	blob := func(digest string) string {
		return filepath.Join(layout, "blobs", strings.Replace(digest, ":", "/", 1))
	}
	for _, d := range index.Manifests {
		if !strings.Contains(d.Annotations["org.opencontainers.image.ref.name"], "community/") {
			continue // the others are invalid on purpose
		}
		var img image
		var m struct {
			Config struct{ Digest string }
			Layers []struct{ Digest string }
		}
		path := blob(d.Digest)
		for _, v := range []any{&m, &img.manifest} {
			if err := readJSON(path, v); err != nil {
				return nil, err
			}
		}
		if m.Config.Digest == "" {
			continue // an index of images
		}
		if err := readJSON(blob(m.Config.Digest), &img.config); err != nil {
			return nil, err
		}
		for _, l := range m.Layers {
			text, err := os.ReadFile(blob(l.Digest))
			if err != nil {
				return nil, err
			}
			img.layers = append(img.layers, text)
		}
		all = append(all, img)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no bundle images", layout)
	}
	return all, nil
}

// variant returns an image with the same files and another time.
func (i image) variant(n int) (image, error) {
	out := image{manifest: i.manifest, config: map[string]any{}}
	for k, v := range i.config {
		out.config[k] = v
	}
	var ids []any
	for _, layer := range i.layers {
		plain, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			return out, err
		}
		var packed bytes.Buffer
		hash := sha256.New()
		z := gzip.NewWriter(&packed)
		w := tar.NewWriter(io.MultiWriter(z, hash))
		for r := tar.NewReader(plain); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return out, err
			}
			h.ModTime, h.Format = time.Unix(int64(n), 0), tar.FormatUnknown
			if err := w.WriteHeader(h); err != nil {
				return out, err
			}
			if _, err := io.Copy(w, r); err != nil {
				return out, err
			}
		}
		for _, c := range []io.Closer{w, z} {
			if err := c.Close(); err != nil {
				return out, err
			}
		}
		out.layers = append(out.layers, packed.Bytes())
		ids = append(ids, fmt.Sprintf("sha256:%x", hash.Sum(nil)))
	}
	out.config["rootfs"] = map[string]any{"type": "layers", "diff_ids": ids}
	return out, nil
}

// onDisk returns the disk space of an image's blobs and of its files, in blocks of 4 KiB.
func (i image) onDisk() (fetched, unpacked int64, err error) {
	blocks := func(n int) int64 { return int64(n+4095) / 4096 * 4096 }
	manifest, config, err := i.texts()
	if err != nil {
		return 0, 0, err
	}
	fetched = blocks(len(manifest)) + blocks(len(config))
	for _, layer := range i.layers {
		fetched += blocks(len(layer))
		plain, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			return 0, 0, err
		}
		for r := tar.NewReader(plain); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return 0, 0, err
			}
			unpacked += blocks(int(h.Size))
		}
	}
	return fetched, unpacked, nil
}

// texts returns the image's manifest and configuration.
func (i image) texts() (manifest, config []byte, err error) {
	if config, err = json.Marshal(i.config); err != nil {
		return nil, nil, err
	}
	describe := func(from any, content []byte) map[string]any {
		d := map[string]any{"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(content)), "size": len(content)}
		if old, ok := from.(map[string]any); ok {
			d["mediaType"] = old["mediaType"]
		}
		return d
	}
	m := map[string]any{}
	for k, v := range i.manifest {
		m[k] = v
	}
	m["config"] = describe(m["config"], config)
	old, _ := m["layers"].([]any)
	var layers []any
	for n, layer := range i.layers {
		layers = append(layers, describe(old[n], layer))
	}
	m["layers"] = layers
	manifest, err = json.Marshal(m)
	return manifest, config, err
}

// push pushes an image to the registry (distribution specification, "Pushing content").
func (i image) push(ctx context.Context, ref string) error {
	host, rest, _ := strings.Cut(ref, "/")
	repository, tag, _ := strings.Cut(rest, ":")
	base := "http://" + host + "/v2/" + repository
	manifest, config, err := i.texts()
	if err != nil {
		return err
	}
	for _, blob := range append(i.layers[:len(i.layers):len(i.layers)], config) {
		resp, err := request(ctx, http.MethodPost, base+"/blobs/uploads/", "", nil)
		if err != nil {
			return err
		}
		to, err := resp.Location()
		if err != nil {
			return err
		}
		q := to.Query()
		q.Set("digest", fmt.Sprintf("sha256:%x", sha256.Sum256(blob)))
		to.RawQuery = q.Encode()
		if _, err := request(ctx, http.MethodPut, to.String(), "application/octet-stream", blob); err != nil {
			return err
		}
	}
	kind, _ := i.manifest["mediaType"].(string)
	if kind == "" {
		kind = "application/vnd.oci.image.manifest.v1+json"
	}
	_, err = request(ctx, http.MethodPut, base+"/manifests/"+tag, kind, manifest)
	return err
}

func request(ctx context.Context, method, url, contentType string, body []byte) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return resp, nil
}
