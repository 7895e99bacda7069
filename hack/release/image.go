package main

import (
	_ "embed"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

//go:embed image.Containerfile
var imageContainerfile []byte

//go:embed debug.Containerfile
var debugContainerfile []byte

// layout is the directory of an OCI layout in the output, and its list of names with digests.
const (
	layout     = "bindery.oci"
	imageNames = "images.txt"
)

// links are the other names of the program in images.
var links = []string{"opm", "oc-mirror", "grpc_health_probe", "kubectl-bindery"}

// images writes the image of bindery for all Linux platforms to an OCI layout, and the debug image if it has a base.
func (r *release) images() error {
	platforms := r.linux()
	if len(platforms) == 0 {
		return nil
	}
	context := filepath.Join(r.scratch, "context")
	var list []string
	for _, p := range platforms {
		list = append(list, p.String())
		if err := r.tree(filepath.Join(context, p.arch), p); err != nil {
			return err
		}
	}
	names, err := r.imageOf(context, imageContainerfile, r.version, list)
	if err != nil {
		return err
	}
	if r.base != "" {
		debug, err := r.imageOf(context, debugContainerfile, r.version+"-debug", list, "--build-arg", "BASE="+r.base)
		if err != nil {
			return fmt.Errorf("the debug image: %w", err)
		}
		names = append(names, debug...)
	}
	return r.write(imageNames, names)
}

// imageOf builds an image with bindery and returns its name with its digest.
func (r *release) imageOf(context string, containerfile []byte, tag string, platforms []string,
	more ...string) ([]byte, error) {
	file, digest := filepath.Join(r.scratch, tag+".Containerfile"), filepath.Join(r.scratch, tag+".digest")
	if err := os.WriteFile(file, containerfile, 0o644); err != nil {
		return nil, err
	}
	args := append([]string{"-q", "build", "containerfile", "-f", file, "-t", r.image + ":" + tag, "--platform",
		strings.Join(platforms, ","), "--to", "oci:" + filepath.Join(r.stage, layout) + ":" + tag, "--digest-file",
		digest,
		"--no-cache", "--build-arg", "VERSION=" + strings.TrimPrefix(r.version, "v"), "--build-arg",
		"COMMIT=" + r.commit,
		"--build-arg", "DATE=" + r.date}, more...)
	env := append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	if _, err := r.command(env, r.host, append(args, context)...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(digest)
	return fmt.Appendf(nil, "%s:%s@%s\n", r.image, tag, strings.TrimSpace(string(text))), err
}

// tree writes the files of an image. Modes are set, whatever the umask.
func (r *release) tree(dir string, p platform) error {
	certificates := filepath.Join(dir, "etc/ca-certificates.crt")
	for _, sub := range []string{"bin", "etc", "home/bindery", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	if err := os.Link(r.programs[p], filepath.Join(dir, "bin/bindery")); err != nil {
		return err
	}
	for _, link := range links {
		if err := os.Symlink("bindery", filepath.Join(dir, "bin", link)); err != nil {
			return err
		}
	}
	var roots strings.Builder
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // a file of certificates cannot express it
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	for file, text := range map[string]string{
		certificates: roots.String(), filepath.Join(dir, "etc/nsswitch.conf"): "hosts: files dns\n",
		filepath.Join(dir, "etc/passwd"): "bindery:x:1001:0:bindery:/home/bindery:/sbin/nologin\n",
		filepath.Join(dir, "etc/group"):  "root:x:0:\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for path, mode := range map[string]os.FileMode{"": 0o755, "bin": 0o755, "bin/bindery": 0o755, "etc": 0o755,
		"home":         0o755,
		"home/bindery": 0o775, "tmp": 0o777 | os.ModeSticky, "etc/ca-certificates.crt": 0o644,
		"etc/nsswitch.conf": 0o644,
		"etc/passwd":        0o644, "etc/group": 0o644} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			return err
		}
	}
	return nil
}

// pushImages copies the images, with their signatures, to a registry.
func (r *release) pushImages() error {
	if r.push == "" {
		return nil
	}
	tags := []string{r.version}
	if r.base != "" {
		tags = append(tags, r.version+"-debug")
	}
	for _, tag := range tags {
		_, err := r.command(os.Environ(), r.host, "-q", "copy", "oci:"+filepath.Join(r.dist, layout)+":"+tag,
			r.push+":"+tag)
		if err != nil {
			return err
		}
		fmt.Printf("%s:%s\n", r.push, tag)
	}
	return nil
}
