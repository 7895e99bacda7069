package web

import (
	"encoding/json"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// readBundle is a bundle with all that pages read of it. It is shared by pages and not changed.
type readBundle struct {
	of        *declcfg.Bundle
	facts     csv
	manifests []manifest
	installed []upgrade.Manifest
	unread    error // why installed has nothing
}

// bundle returns a bundle with its manifests.
func (p *page) bundle(place *blob) (*readBundle, error) {
	if p.files != nil {
		return p.files.bundle(place)
	}
	return p.readBundle(place)
}

func (p *page) readBundle(place *blob) (*readBundle, error) {
	b, err := p.c.bundle(place)
	if err != nil {
		return nil, err
	}
	r := &readBundle{of: b, manifests: manifestsOf(b)}
	r.facts = csvFrom(b, func() (json.RawMessage, error) {
		for _, m := range r.manifests {
			if jsonscan.Kind(m.text) == "ClusterServiceVersion" {
				return m.text, nil
			}
		}
		if len(r.manifests) > maxInstalled {
			return b.CSV()
		}
		return nil, nil
	})
	r.installed, r.unread = installs(r.manifests)
	return r, nil
}

// installs returns what the bundle installs. The list is the caller's own.
func (r *readBundle) installs() ([]upgrade.Manifest, error) {
	return slices.Clone(r.installed), r.unread
}
