package opmcache

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/opmformat"
)

// packageIndex is the index in the making.
type packageIndex opmformat.Index

func (x packageIndex) text() ([]byte, error) { return json.Marshal(x) }

// add takes in the packages of a catalog.
func (x packageIndex) add(c *declcfg.Catalog) error {
	graph, err := declcfg.NewGraph(c)
	if err != nil {
		return err
	}
	for _, p := range graph.Packages {
		if p.Default() == nil {
			return fmt.Errorf("package %q: default channel %q not found", p.Name, p.DefaultChannel)
		}
		ip := opmformat.Package{
			Name: p.Name, Description: p.Description, DefaultChannel: p.DefaultChannel,
			Channels: map[string]opmformat.Channel{}, Deprecation: deprecation(p.Deprecation),
		}
		if p.Icon != nil {
			ip.Icon = &opmformat.Icon{Data: p.Icon.Data, MediaType: p.Icon.MediaType}
		}
		for _, c := range p.Channels {
			head, err := c.Head()
			if err != nil {
				return fmt.Errorf("package %q, channel %q: %w", p.Name, c.Name, err)
			}
			ic := opmformat.Channel{Name: c.Name, Head: head.Name, Bundles: map[string]opmformat.Entry{}, Deprecation: deprecation(c.Deprecation)}
			for _, e := range c.Entries {
				ic.Bundles[e.Name] = opmformat.Entry{Package: p.Name, Channel: c.Name, Name: e.Name, Replaces: e.Replaces, Skips: e.Skips}
			}
			ip.Channels[c.Name] = ic
		}
		x[p.Name] = ip
	}
	return nil
}

func deprecation(message *string) *opmformat.Deprecation {
	if message == nil {
		return nil
	}
	return &opmformat.Deprecation{Message: *message}
}
