package helmtemplate

import (
	"context"
	"maps"
	"slices"
)

// RenderFiles returns the texts of all template files as they are rendered, with notes, and the manifests.
func (c *Chart) RenderFiles(ctx context.Context, o Options) (map[string]string, []Manifest, error) {
	caps, err := capabilities(o)
	if err != nil {
		return nil, nil, err
	}
	root, values, err := c.prepare(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	files, err := execute(ctx, root, values, caps)
	if err != nil {
		return nil, nil, err
	}
	m, err := manifests(ctx, root, files, o.Tests)
	return files, m, err
}

// DefaultValues returns the values of the chart itself.
func (c *Chart) DefaultValues() (map[string]any, error) {
	root, err := assemble(c.tree)
	if err != nil {
		return nil, err
	}
	return maps.Clone(root.Values), nil
}

// APIs returns the APIs that templates see, and HelmVersion the version of Helm.
func APIs() VersionSet { return apiVersions() }

// Functions returns the names of the functions that templates can call.
func Functions() []string { return slices.Sorted(maps.Keys(newEngine(context.Background()).known)) }
