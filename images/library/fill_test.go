package library_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/transport"
)

// An image is written to a directory and to an archive of docker, and read from there with the same configuration.
func TestFilesAreFilled(t *testing.T) {
	dir := t.TempDir()
	bundle, err := build.ReadBundle(os.DirFS("../../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		t.Fatal(err)
	}
	img, err := build.Bundle(t.Context(), bundle, build.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	client, err := images.NewClient(images.ClientOptions{NoPolicy: true, Options: registries.Options{Temp: t.TempDir()}, Transports: transports})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, text := range []string{"dir:" + filepath.Join(dir, "files"),
		"docker-archive:" + filepath.Join(dir, "x.tar") + ":quay.io/acme/etcd:v1"} {
		dest, err := transports.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		results, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{dest},
			images.CopyOptions{Transports: transports, Options: registries.Options{Temp: t.TempDir()}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		src, err := client.Open(t.Context(), text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d, err := src.Describe(t.Context())
		if err != nil || len(d.Variants) != 1 || d.Variants[0].Config.Config.Labels == nil ||
			len(d.Variants[0].Config.RootFS.DiffIDs) != len(img.Layers) || len(results) != 1 {
			t.Errorf("%s: %+v, %v", text, d, err)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A failure leaves nothing, and what was there stays.
func TestFillingFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle, err := build.ReadBundle(os.DirFS("../../testdata/bundles/etcd/0.9.4"))
	if err != nil {
		t.Fatal(err)
	}
	layers := t.TempDir()
	img, err := build.Bundle(t.Context(), bundle, build.Options{Dir: layers})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if err := errors.Join(os.RemoveAll(layers), os.Mkdir(layers, 0o700)); err != nil { // the layers are lost
		t.Fatal(err)
	}
	for _, text := range []string{"dir:" + filepath.Join(dir, "files"), "docker-archive:" + file} {
		dest, err := transports.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := images.Copy(t.Context(), img.Store(), img.Top(), []transport.Destination{dest},
			images.CopyOptions{Transports: transports, Options: registries.Options{Temp: t.TempDir()}}); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("%s, %v", text, err)
	}
}
