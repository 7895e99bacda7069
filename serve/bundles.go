package serve

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/api"
)

// Bundles yields the answers about the bundles of a catalog, one for each entry of each channel, with manifests and
// edges; which of these an answer contains depends on the call. They are sorted by package, bundle and channel, and the
// manifests of one bundle are in memory at a time. The catalog must not be a skeleton. The first error is the last
// pair.
func Bundles(c *declcfg.Catalog) iter.Seq2[*api.Bundle, error] {
	return func(yield func(*api.Bundle, error) bool) {
		graph, err := c.Graph()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, pkg := range graph.Packages {
			for _, b := range pkg.Bundles {
				all, err := BundleAnswers(pkg, b)
				if err != nil {
					yield(nil, err)
					return
				}
				for _, a := range all {
					if !yield(a, nil) {
						return
					}
				}
			}
		}
	}
}

// BundleAnswers returns those of [Bundles] about one bundle, by channel. They share its manifests.
func BundleAnswers(pkg *declcfg.PackageNode, b *declcfg.BundleNode) ([]*api.Bundle, error) {
	common, err := commonAnswer(pkg, b)
	if err != nil {
		return nil, fmt.Errorf("package %q, bundle %q: %w", pkg.Name, b.Name, err)
	}
	var all []*api.Bundle
	for _, c := range pkg.Channels {
		entry := c.Entry(b.Name)
		if entry == nil {
			continue
		}
		all = append(all, &api.Bundle{
			CsvName: common.CsvName, PackageName: common.PackageName, ChannelName: c.Name, CsvJson: common.CsvJson,
			Object:     common.Object,
			BundlePath: common.BundlePath, ProvidedApis: common.ProvidedApis, RequiredApis: common.RequiredApis,
			Version:   common.Version,
			SkipRange: entry.SkipRange, Dependencies: common.Dependencies, Properties: common.Properties,
			Replaces: entry.Replaces, Skips: entry.Skips, Deprecation: common.Deprecation,
		})
	}
	return all, nil
}

// commonAnswer returns the common part of the answers about a bundle.
func commonAnswer(pkg *declcfg.PackageNode, b *declcfg.BundleNode) (*api.Bundle, error) {
	props, err := readProperties(b.Bundle)
	if err != nil {
		return nil, err
	}
	wire, err := appendHeavyBundle(lightBundle(pkg, b, props), pkg, b, props.csv)
	if err != nil {
		return nil, err
	}
	common := &api.Bundle{}
	return common, proto.Unmarshal(wire, common)
}
