package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/serve"
)

// openCatalogImage reads the catalog and the serve cache out of an image in an OCI layout. The tree must be closed.
func openCatalogImage(ctx context.Context, ref string) (tree *images.Tree, catalog, cache fs.FS, err error) {
	image, err := images.Open(ctx, ref, images.OpenOptions{Platform: v1.Platform{OS: "linux", Architecture: runtime.GOARCH}})
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	label, ok := image.Label(build.ConfigsLabel)
	if !ok {
		return nil, nil, nil, fmt.Errorf("%q is not a catalog image: it has no label %s", ref, build.ConfigsLabel)
	}
	configs, err := insideRoot(label)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%q: label %s: %w", ref, build.ConfigsLabel, err)
	}
	wanted := []string{configs}
	cacheDir := ""
	for _, arg := range image.Config.Config.Cmd {
		if dir, ok := strings.CutPrefix(arg, "--cache-dir="); ok {
			if cacheDir, err = insideRoot(dir); err == nil && !strings.HasPrefix(cacheDir, "tmp") {
				wanted = append(wanted, cacheDir)
			}
		}
	}
	if tree, err = image.Extract(ctx, wanted, images.ExtractOptions{}); err != nil {
		return nil, nil, nil, fmt.Errorf("%q: %w", ref, err)
	}
	opened := tree // a return of an error unsets tree
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	if catalog, err = subTree(tree, configs); err != nil {
		return nil, nil, nil, fmt.Errorf("%q: %w", ref, err)
	}
	if len(wanted) > 1 {
		if info, err := fs.Stat(tree, cacheDir); err == nil && info.IsDir() {
			if cache, err = fs.Sub(tree, cacheDir); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	return tree, catalog, cache, nil
}

func subTree(tree fs.FS, dir string) (fs.FS, error) {
	if info, err := fs.Stat(tree, dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no directory /%s in it", dir)
	} else if err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("/%s is not a directory", dir)
	}
	return fs.Sub(tree, dir)
}

// insideRoot turns an absolute path of an image into one relative to its root.
func insideRoot(name string) (string, error) {
	clean := strings.TrimPrefix(path.Clean("/"+name), "/")
	if !path.IsAbs(name) || clean == "" || strings.Contains(name, "..") || !fs.ValidPath(clean) {
		return "", fmt.Errorf("%.300q is not a directory of the image", name)
	}
	return clean, nil
}

// imageSource serves a catalog image straight from its OCI layout.
func (p *program) imageSource(ctx context.Context, ref string) (serve.Source, func() error, error) {
	tree, catalog, cache, err := openCatalogImage(ctx, ref)
	if err != nil {
		return serve.Source{}, nil, err
	}
	return serve.FileSystem(ref, catalog, cache), tree.Close, nil
}

// notRead is the error for a reference that is neither on disk nor in an OCI layout.
func notRead(ref string) error {
	if kind, err := os.Stat(ref); err == nil && kind != nil {
		return fmt.Errorf("%q is not a catalog", ref)
	}
	for _, transport := range []string{"docker://", "oci-archive:", "docker-archive:", "dir:", "containers-storage:"} {
		if strings.HasPrefix(ref, transport) {
			return &cliutil.Error{Class: cliutil.ClassInput, Object: ref, Err: fmt.Errorf("%q: images are read from an OCI layout only: oci:DIR:TAG", ref),
				Hint: "\"skopeo copy " + ref + " oci:DIR:TAG\" makes one"}
		}
	}
	return &cliutil.Error{Class: cliutil.ClassLocal, Object: ref, Err: fmt.Errorf("%q: %w", ref, syscall.ENOENT),
		Hint: "a reference is a catalog directory, an index database, or an image in an OCI layout: oci:DIR:TAG"}
}

// renderImage renders a catalog image in an OCI layout.
func (p *program) renderImage(ctx context.Context, ref string) (iter.Seq2[declcfg.Blob, error], error) {
	if !strings.HasPrefix(ref, "oci:") {
		return nil, notRead(ref)
	}
	return func(yield func(declcfg.Blob, error) bool) {
		tree, catalog, _, err := openCatalogImage(ctx, ref)
		if err != nil {
			yield(nil, err)
			return
		}
		defer tree.Close()
		c, err := declcfg.Load(ctx, catalog, declcfg.LoadOptions{Warn: p.warnAt})
		if err != nil {
			yield(nil, err)
			return
		}
		c.Blobs()(yield)
	}, nil
}
