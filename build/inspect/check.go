package inspect

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
)

// check rebuilds a layer that the image declares to be bindery's and reports how the result differs.
func (e *examiner) check(ctx context.Context, i images.SurveyedImage, f *facts, c *contents) error {
	l := layerCheck{examiner: e, f: f, c: c, image: i, want: i.Config.RootFS.DiffIDs[layerIndex(i, f)].String(),
		catalog: declcfg.NewReader(declcfg.LoadOptions{Skeleton: true})}
	for n, x := range c.entries {
		if x.odd != "" && n < 1000 {
			l.report(aboutLayer, "", x.name, "its header has %s, unlike all bindery layers", x.odd)
		}
		if x.kind != tar.TypeReg && x.kind != tar.TypeDir && f.declared.kind != string(build.LayerServer) {
			l.report(aboutLayer, "", x.name, "it is neither a file nor a directory")
		}
	}
	switch build.LayerKind(f.declared.kind) {
	case build.LayerPackages:
		return l.packages(ctx)
	case build.LayerServer:
		return l.server(ctx)
	case build.LayerReset:
		for _, x := range c.entries {
			if _, _, ok := x.hidden(); !ok && x.kind != tar.TypeDir {
				l.report(aboutLayer, "", x.name, "a layer that hides what the base has holds a file")
			}
		}
		return l.rebuild(ctx, false)
	case build.LayerDatabase:
		if err := l.database(ctx); err != nil {
			return err
		}
		return l.rebuild(ctx, true)
	case build.LayerManifests, build.LayerMetadata, build.LayerTests:
		return l.rebuild(ctx, true)
	case build.LayerCache:
		return l.rebuild(ctx, false)
	}
	l.report(aboutAnnotation, "", "", "unknown layer kind %.100q", f.declared.kind)
	return nil
}

// layerIndex returns the position of the layer in the image.
func layerIndex(i images.SurveyedImage, f *facts) int {
	for n, l := range i.Layers {
		if l.Digest == f.digest {
			return n
		}
	}
	return 0
}

type layerCheck struct {
	*examiner
	f     *facts
	c     *contents
	image images.SurveyedImage
	want  string
	// catalog reads the files of the catalog one by one.
	catalog *declcfg.Reader
}

func (l *layerCheck) report(about subject, pkg, file, format string, args ...any) {
	l.examiner.report(difference{About: about, Layer: l.f.digest, Package: pkg, File: file,
		Message: fmt.Sprintf(format, args...)})
}

// compare writes the rebuilt layer and compares its diffID with the image's.
func (l *layerCheck) compare(ctx context.Context, built layers.Layer) error {
	got, err := diffID(ctx, built)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return err // of the temporary file
	case err != nil:
		l.report(aboutLayer, "", "", "it cannot be rebuilt: %v", err)
	case got.String() != l.want:
		l.report(aboutLayer, "", "", "the rebuilt layer has diffID %s instead of %s", got, l.want)
	}
	l.f.rebuilt = err == nil
	if err == nil && got.String() == l.want {
		return l.key(ctx, built)
	}
	return nil
}

// key compares the declared key of the layer with the key that this version computes. Builds reuse a layer with the
// right key without reading it, so a wrong key would bring wrong content into later images. The key of a layer with a
// cache of all packages depends on every package and is not checked.
func (l *layerCheck) key(ctx context.Context, built layers.Layer) error {
	if l.f.declared.key == "" || l.f.declared.kind == string(build.LayerCache) {
		return nil
	}
	built, err := built.Hash(ctx)
	if err != nil {
		return err
	}
	c := layers.Compression(compressionOf(l.image.Layers[layerIndex(l.image, l.f)].MediaType))
	key, err := built.Key(layers.Options{Compression: c})
	if err != nil {
		return err
	}
	if key != "" && key != l.f.declared.key {
		l.report(aboutAnnotation, "", "", "the key %.100q differs from the one of this version, %s",
			string(l.f.declared.key), key)
	}
	return nil
}

// rebuild builds the layer again from its own entries. With normal set, files must have mode 0644 and directories 0755;
// otherwise the rebuilt layer takes over the modes of the entries.
func (l *layerCheck) rebuild(ctx context.Context, normal bool) error {
	var built layers.Layer
	for _, x := range l.c.entries {
		y, err := l.c.layerEntry(x)
		if err != nil {
			continue // reported already
		}
		if normal {
			if y.Mode = 0o644; y.Kind == layers.KindDir {
				y.Mode = 0o755
			}
			if int64(y.Mode) != x.mode {
				l.report(aboutMode, "", x.name, "mode %04o instead of %04o", x.mode, y.Mode)
			}
		}
		built.Entries = append(built.Entries, y)
	}
	return l.compare(ctx, built)
}

// serverFiles are the files of a server layer.
var serverFiles = map[string]bool{"bin/opm": true, "bin/grpc_health_probe": true, "etc/nsswitch.conf": true}

// server rebuilds a server layer from the program in it.
func (l *layerCheck) server(ctx context.Context) error {
	dirs := map[string]bool{"bin": true, "etc": true, "tmp": true}
	var program *entry
	for n, x := range l.c.entries {
		if !dirs[x.name] && !serverFiles[x.name] {
			l.report(aboutServer, "", x.name, "it does not belong in a server layer")
		}
		if x.name == "bin/opm" && x.kind == tar.TypeReg {
			program = &l.c.entries[n]
		}
	}
	if program == nil {
		l.report(aboutServer, "", "bin/opm", "the layer has no server")
		return nil
	}
	p := platform.Plain(l.image.Platform)
	rebuilt, err := cataloglayer.Program(func() (io.ReadCloser, error) { return l.c.open(*program) }, program.size, p)
	if err != nil {
		l.report(aboutServer, "", "bin/opm", "%s", strings.TrimPrefix(err.Error(), "server: "))
		return nil
	}
	return l.compare(ctx, cataloglayer.Server(rebuilt, p))
}
