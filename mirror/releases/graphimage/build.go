package graphimage

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/layers"
)

// DefaultBase is the image that the graph image is built from unless another one is asked for.
const DefaultBase = "registry.access.redhat.com/ubi9/ubi:latest"

// directory is where the image has the data, without the leading slash.
const directory = "var/lib/cincinnati-graph-data"

// command copies the data to the volume of the update service.
var command = []string{"/bin/bash", "-c",
	"exec cp -rp /" + directory + "/* /var/lib/cincinnati/graph-data"}

// Options are the parts of a graph image. Base, Data and Dir are required.
type Options struct {
	// Base is the base image, an index or a single image. It must stay open until the image is closed.
	Base *images.Source
	// Data is the archive of the graph data, a tar compressed with gzip, which is read from where the file stands.
	Data *os.File
	// Platforms, unless empty, leave out the images of the base for other platforms, except the one for linux/amd64.
	Platforms []v1.Platform
	// Dir is a private directory for the layer. It must exist until the image has been copied.
	Dir string
	// Limits bound what is read of the data, and, apart from it, of the layers of each image of the base.
	Limits images.Limits
}

// Build builds the image: an index like that of the base, unless only one image is left of it. The layers of the base
// are read for a look at what is in them. The caller closes the image.
//
// Errors name the base or the data. They are of the class [fault.ErrInvalid] for a base without /bin/bash, and for an
// archive with anything but files and directories, and otherwise those of [images.Client.Open].
func Build(ctx context.Context, o Options) (*build.Image, error) {
	survey, err := o.Base.Survey(ctx)
	if err != nil {
		return nil, err
	}
	layer, err := writeLayer(ctx, o.Dir, o.Data, o.Limits.WithDefaults())
	if err != nil {
		return nil, fmt.Errorf("graph data: %w", err)
	}
	platforms := o.Platforms
	if len(platforms) > 0 {
		platforms = append(slices.Clone(platforms), v1.Platform{OS: "linux", Architecture: "amd64"})
	}
	name := cmp.Or(redact.Text(o.Base.Given), o.Base.Digest.String())
	bo := build.Options{Dir: o.Dir}
	var all []build.Custom
	for _, i := range survey.Images {
		if wanted, _ := store.Select([]v1.Descriptor{i.Entry}, platforms); len(wanted) == 0 {
			continue
		}
		if err := checkBash(ctx, i.Image, o.Limits); err != nil {
			return nil, fmt.Errorf("base of the graph image, %s, %s: %w", name, platform.Name(i.Platform), err)
		}
		if i.MediaType == manifest.DockerV2Schema2MediaType {
			bo.Format = build.FormatDocker
		}
		all = append(all, build.Custom{
			Platform: i.Platform, BaseName: o.Base.Named(), Layers: []*layers.Layer{layer},
			Base: &build.Base{Name: name, Open: func(ctx context.Context, choose images.Chooser) (*images.Image, error) {
				at, err := images.At(ctx, o.Base, i.Entry)
				if err != nil {
					return nil, err
				}
				return at.Choose(ctx, choose)
			}},
			Config: func(ids []digest.Digest, history []v1.History) ([]byte, error) {
				return configText(i.Image, ids, history)
			},
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: base of the graph image, %s: it has no image for linux/amd64 or a platform that is"+
			" asked for", fault.ErrInvalid, name)
	}
	return build.Assemble(ctx, all, bo)
}

// errSeen ends the reading of a layer.
var errSeen = errors.New("seen")

// checkBash refuses an image without /bin/bash, as a file or a link: there, or in /usr/bin with a link to that.
func checkBash(ctx context.Context, i *images.Image, limits images.Limits) error {
	r := images.NewLayerReader(limits)
	linked, there := false, map[string]bool{}
	for n := range i.Layers {
		_, err := r.Read(ctx, i, n, func(name string, h *tar.Header, _ io.Reader) error {
			if h.Typeflag == tar.TypeSymlink && name == "bin" {
				linked = strings.Trim(h.Linkname, "/") == "usr/bin"
			}
			if path.Base(name) == "bash" && h.Typeflag != tar.TypeDir {
				there[name] = true
			}
			if there["bin/bash"] || linked && there["usr/bin/bash"] {
				return errSeen
			}
			return nil
		})
		if errors.Is(err, errSeen) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: it has no /bin/bash, with which a cluster copies the graph data: choose another base with"+
		" --graph-base", fault.ErrInvalid)
}

// configText returns the configuration of the base with another command and the added layer. What else is there stays,
// also what only docker knows.
func configText(base *images.Image, ids []digest.Digest, history []v1.History) ([]byte, error) {
	all := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(base.ConfigText))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	config, ok := all["config"].(map[string]any)
	if !ok {
		config = map[string]any{}
	}
	config["Cmd"] = command
	all["config"], all["rootfs"] = config, v1.RootFS{Type: "layers", DiffIDs: ids}
	all["history"] = append(slices.Clone(history), v1.History{Created: base.Config.Created, CreatedBy: "graph data"})
	return json.Marshal(all)
}
