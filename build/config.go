package build

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
)

// purpose is the part of the configuration that is specific to a kind of image.
type purpose struct {
	// command is the command for the history of the image.
	command string
	// configure sets the command and the working directory of the image. b is nil without a base.
	configure func(c *v1.ImageConfig, o *Options, b *base)
	// labels declare the content of the image. [Options.Labels] must not override them, nor set those that are empty
	// here.
	labels map[string]string
}

// checkLabels refuses labels that contradict the content of the image: no client could read it.
func (o *Options) checkLabels() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.purpose.labels)) {
		is := o.purpose.labels[name]
		switch got, ok := o.Labels[name]; {
		case !ok || got == is && is != "":
		case is == "":
			errs = append(errs, fmt.Errorf("%w: %s=%.200q: the image has no such content", errLabel, name, got))
		default:
			errs = append(errs,
				fmt.Errorf("%w: %s=%.200q: it must be %q, which is set automatically", errLabel, name, got, is))
		}
	}
	return errors.Join(errs...)
}

// The command of every catalog image.
const (
	serverUser  = "1001"
	servePort   = "50051/tcp"
	defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

func catalogPurpose() purpose {
	labels := map[string]string{ConfigsLabel: "/" + cataloglayer.ConfigsDir, DatabaseLabel: ""}
	return purpose{"bindery build catalog", func(c *v1.ImageConfig, o *Options, b *base) {
		c.Labels = withLabels(c.Labels, map[string]string{ConfigsLabel: "/" + cataloglayer.ConfigsDir})
		delete(c.Labels, DatabaseLabel)
		c.User = serverUser
		serving(c, o, b)
		c.Cmd = []string{"serve", "/" + cataloglayer.ConfigsDir}
		if dir := o.extraDir(); dir != "" {
			c.Cmd = append(c.Cmd, "--cache-dir=/"+dir)
		} else if o.caches.Native != nil {
			c.Cmd = append(c.Cmd, "--cache-dir=/"+cataloglayer.CacheDir)
		}
	}, labels}
}

// serving sets the common configuration of all images that serve.
func serving(c *v1.ImageConfig, o *Options, b *base) {
	c.User = cmp.Or(c.User, serverUser)
	c.Entrypoint = []string{o.program}
	c.ExposedPorts = map[string]struct{}{servePort: {}}
	if b != nil {
		maps.Copy(c.ExposedPorts, b.config.Config.ExposedPorts)
	}
	// Probes are started by name only, and not every container runtime has a default PATH.
	if !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		c.Env = append(slices.Clone(c.Env), defaultPath)
	}
}

// imageConfig returns the JSON configuration of an image for one platform. ls are all layers, those of the base first.
func imageConfig(o *Options, p v1.Platform, b *base, ls []Layer) ([]byte, error) {
	created := o.created()
	c := v1.Image{}
	if b != nil {
		c = b.config
		c.History = b.history()
	}
	c.Created = &created
	c.Platform = p
	c.Config.WorkingDir = "/"
	labels, _ := o.inherited(p)
	c.Config.Labels = withLabels(c.Config.Labels, labels)
	o.purpose.configure(&c.Config, o, b)
	c.Config.Labels = withLabels(c.Config.Labels, o.Labels)
	c.RootFS = v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{}}
	for _, l := range ls {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, l.DiffID)
		if l.Kind != LayerBase {
			c.History = append(c.History,
				v1.History{Created: &created, CreatedBy: o.purpose.command, Comment: l.comment()})
		}
	}
	return json.Marshal(c)
}

// comment returns the comment of a layer in the history.
func (l Layer) comment() string {
	switch {
	case l.Kind == LayerManifests, l.Kind == LayerMetadata, l.Kind == LayerTests:
		return "/" + l.dir
	case l.Kind == LayerDatabase, l.Kind == LayerCache:
		return "/" + l.dir
	case l.Kind == LayerServer:
		return "/" + cataloglayer.ServerPath
	case l.Kind == LayerReset && l.dir != "":
		return "without the bundle of the base"
	case l.Kind == LayerReset:
		return "without the catalog of the base"
	case len(l.Packages) == 0:
		return "/" + cataloglayer.ConfigsDir
	case len(l.Packages) == 1:
		return "/" + cataloglayer.ConfigsDir + "/" + l.Packages[0]
	}
	return "/" + cataloglayer.ConfigsDir + ": " + strings.Join(l.Packages, ", ")
}
