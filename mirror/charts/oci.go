package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

const (
	ociScheme = "oci"
	ociPrefix = ociScheme + "://"
	// layerType is the media type of a chart's archive in a registry.
	layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Registry is how registries with charts are asked.
type Registry interface {
	// Tags lists the tags of a repository.
	Tags(ctx context.Context, repository string) ([]string, error)
	// Open opens HOST/PATH:TAG. The caller calls done.
	Open(ctx context.Context, name string) (from store.Reader, top v1.Descriptor, done func() error, err error)
}

// getOCI gets a chart of a registry: the tags of its repository are its versions, with _ for +.
func (g *Getter) getOCI(ctx context.Context, w Wanted, at *url.URL, a *Archive) (err error) {
	if g.Registry == nil {
		return fmt.Errorf("%w: no registry is asked for charts", fault.ErrInvalid)
	}
	repository := strings.Trim(at.Host+at.Path, "/") + "/" + w.Name
	if a.Version = w.Rule.text; !w.Rule.IsExact() || strings.HasPrefix(a.Version, "v") {
		tags, err := g.Registry.Tags(ctx, repository)
		if errors.Is(err, fs.ErrNotExist) {
			return absent("there is no chart " + repository)
		}
		if err != nil {
			return fmt.Errorf("tags of %s: %w", repository, err)
		}
		var versions []string
		for _, tag := range tags {
			if v := strings.ReplaceAll(tag, "_", "+"); FullVersion(v) != "" {
				versions = append(versions, v)
			}
		}
		sortVersions(versions)
		n := w.Rule.find(versions)
		if n < 0 {
			return noVersion(w.Name, w.Rule, versions)
		}
		a.Version = versions[n]
	}
	name := repository + ":" + strings.ReplaceAll(a.Version, "+", "_")
	a.Source = ociPrefix + name
	from, top, done, err := g.Registry.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return absent("there is no chart " + name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	text, _, err := from.Manifest(ctx, top.Digest.String())
	if err != nil {
		return err
	}
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%w: %s: %w", fault.ErrInvalid, name, err)
	}
	for _, layer := range m.Layers {
		if layer.MediaType != layerType {
			continue
		}
		if layer.Size > MaxArchive {
			return fmt.Errorf("%w: %s has an archive of %d bytes (limit %d)", fault.ErrLimit, name, layer.Size, MaxArchive)
		}
		r, err := from.Blob(ctx, layer, 0)
		if err != nil {
			return err
		}
		a.Data, err = io.ReadAll(r)
		a.Digest = layer.Digest
		return errors.Join(err, r.Close())
	}
	return fmt.Errorf("%w: %s is no chart: it has no layer %s", fault.ErrInvalid, name, layerType)
}
