package opmcache

import (
	"encoding/json"
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// packageIndex is the index of both formats, named packages.json: packages by name. The case of the keys is opm's.
type packageIndex map[string]indexedPackage

type indexedPackage struct {
	Name           string                    `json:"name"`
	Description    string                    `json:"description"`
	Icon           *indexedIcon              `json:"icon"`
	DefaultChannel string                    `json:"defaultChannel"`
	Channels       map[string]indexedChannel `json:"Channels"`
	Deprecation    *indexedDeprecation       `json:"deprecation,omitempty"`
}

type indexedIcon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type indexedChannel struct {
	Name        string                  `json:"Name"`
	Head        string                  `json:"Head"`
	Bundles     map[string]indexedEntry `json:"Bundles"`
	Deprecation *indexedDeprecation     `json:"deprecation,omitempty"`
}

type indexedEntry struct {
	Package  string   `json:"package"`
	Channel  string   `json:"channel"`
	Name     string   `json:"name"`
	Replaces string   `json:"replaces"`
	Skips    []string `json:"skips"`
}

type indexedDeprecation struct {
	Message string `json:"message"`
}

func (x packageIndex) text() ([]byte, error) { return json.Marshal(x) }

func (x packageIndex) add(c *declcfg.Catalog) error {
	graph, err := c.Graph()
	if err != nil {
		return err
	}
	for _, p := range graph.Packages {
		if p.Default() == nil {
			return fmt.Errorf("package %q: default channel %q not found", p.Name, p.DefaultChannel)
		}
		ip := indexedPackage{
			Name: p.Name, Description: p.Description, DefaultChannel: p.DefaultChannel,
			Channels: map[string]indexedChannel{}, Deprecation: deprecation(p.Deprecation),
		}
		if p.Icon != nil {
			ip.Icon = &indexedIcon{Data: p.Icon.Data, MediaType: p.Icon.MediaType}
		}
		for _, c := range p.Channels {
			head, err := c.Head()
			if err != nil {
				return fmt.Errorf("package %q, channel %q: %w", p.Name, c.Name, err)
			}
			ic := indexedChannel{Name: c.Name, Head: head.Name, Bundles: map[string]indexedEntry{},
				Deprecation: deprecation(c.Deprecation)}
			for _, e := range c.Entries {
				ic.Bundles[e.Name] = indexedEntry{Package: p.Name, Channel: c.Name, Name: e.Name, Replaces: e.Replaces,
					Skips: e.Skips}
			}
			ip.Channels[c.Name] = ic
		}
		x[p.Name] = ip
	}
	return nil
}

func deprecation(message *string) *indexedDeprecation {
	if message == nil {
		return nil
	}
	return &indexedDeprecation{Message: *message}
}
