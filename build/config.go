package build

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// ConfigsLabel is the label that tells where in an image the catalog is.
const ConfigsLabel = "operators.operatorframework.io.index.configs.v1"

// What every catalog image runs.
const (
	serverUser  = "1001"
	servePort   = "50051/tcp"
	defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// imageConfig is the text of the configuration of a catalog image for one platform. ls are all layers, those of the base
// first.
func imageConfig(o *Options, p v1.Platform, b *base, ls []Layer) ([]byte, error) {
	created := o.created()
	c := v1.Image{}
	if b != nil {
		c = b.config
		c.History = b.history()
	}
	c.Created = &created
	c.Platform = p
	c.Config.Labels = withLabels(c.Config.Labels, map[string]string{ConfigsLabel: "/" + configsDir})
	maps.Copy(c.Config.Labels, o.Labels)
	c.Config.User = serverUser
	c.Config.WorkingDir = "/"
	c.Config.Entrypoint = []string{"/" + serverPath}
	c.Config.Cmd = []string{"serve", "/" + configsDir}
	if o.Cache != nil {
		c.Config.Cmd = append(c.Config.Cmd, "--cache-dir=/"+cacheDir)
	}
	c.Config.ExposedPorts = map[string]struct{}{servePort: {}}
	if b != nil {
		maps.Copy(c.Config.ExposedPorts, b.config.Config.ExposedPorts)
	}
	// Probes are started by their bare name, and not every runtime has a default for it.
	if !slices.ContainsFunc(c.Config.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }) {
		c.Config.Env = append(slices.Clone(c.Config.Env), defaultPath)
	}
	c.RootFS = v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{}}
	for _, l := range ls {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, l.DiffID)
		if l.Kind != LayerBase {
			c.History = append(c.History, v1.History{Created: &created, CreatedBy: "bindery build catalog", Comment: l.comment()})
		}
	}
	return json.Marshal(c)
}

// comment is what the history tells of a layer.
func (l Layer) comment() string {
	switch {
	case l.Kind == LayerServer:
		return "/" + serverPath
	case l.Kind == LayerReset:
		return "without the catalog of the base"
	case len(l.Packages) == 0:
		return "/" + configsDir
	case len(l.Packages) == 1:
		return "/" + configsDir + "/" + l.Packages[0]
	}
	return "/" + configsDir + ": " + strings.Join(l.Packages, ", ")
}
