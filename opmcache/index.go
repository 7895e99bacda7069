package opmcache

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// packageIndex is what both formats have under the name packages.json. The case of the keys is opm's.
type packageIndex map[string]indexPackage

type indexPackage struct {
	Name           string                  `json:"name"`
	Description    string                  `json:"description"`
	Icon           *indexIcon              `json:"icon"`
	DefaultChannel string                  `json:"defaultChannel"`
	Channels       map[string]indexChannel `json:"Channels"`
	Deprecation    *indexDeprecation       `json:"deprecation,omitempty"`
}

type indexIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type indexChannel struct {
	Name        string                 `json:"Name"`
	Head        string                 `json:"Head"`
	Bundles     map[string]indexBundle `json:"Bundles"`
	Deprecation *indexDeprecation      `json:"deprecation,omitempty"`
}

type indexBundle struct {
	Package  string   `json:"package"`
	Channel  string   `json:"channel"`
	Name     string   `json:"name"`
	Replaces string   `json:"replaces"`
	Skips    []string `json:"skips"`
}

type indexDeprecation struct {
	Message string `json:"message"`
}

// indexName is the name of the index, in both formats.
const indexName = "packages.json"

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
		ip := indexPackage{
			Name: p.Name, Description: p.Description, DefaultChannel: p.DefaultChannel,
			Channels: map[string]indexChannel{}, Deprecation: deprecation(p.Deprecation),
		}
		if p.Icon != nil {
			ip.Icon = &indexIcon{p.Icon.Data, p.Icon.MediaType}
		}
		for _, c := range p.Channels {
			head, err := c.Head()
			if err != nil {
				return fmt.Errorf("package %q, channel %q: %w", p.Name, c.Name, err)
			}
			ic := indexChannel{Name: c.Name, Head: head.Name, Bundles: map[string]indexBundle{}, Deprecation: deprecation(c.Deprecation)}
			for _, e := range c.Entries {
				ic.Bundles[e.Name] = indexBundle{Package: p.Name, Channel: c.Name, Name: e.Name, Replaces: e.Replaces, Skips: e.Skips}
			}
			ip.Channels[c.Name] = ic
		}
		x[p.Name] = ip
	}
	return nil
}

func deprecation(message *string) *indexDeprecation {
	if message == nil {
		return nil
	}
	return &indexDeprecation{*message}
}
