package imageset

import (
	"errors"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// Platform are the releases of OpenShift or OKD that are wanted. The zero value wants none.
type Platform struct {
	// Graph wants an image with the data of all update graphs, for the update service of a cluster.
	Graph    bool
	Channels []releases.Channel
	// Architectures are those of the releases, under the names of the graph server, each once; none means amd64.
	Architectures []string
	// Platforms, unless empty, are the platforms of multi-architecture releases to copy; OS and Architecture are set in
	// each. They exclude Architectures.
	Platforms []v1.Platform
	// Release, unless zero, is the only release, whatever the channels are. It is in a registry.
	Release Ref
	// KubeVirt wants the boot images of virtual machines, too.
	KubeVirt bool
	// written is Release as it stands in the file.
	written string
}

// IsZero tells whether nothing is wanted that there could be without a release.
func (p *Platform) IsZero() bool {
	return len(p.Channels) == 0 && p.Release.IsZero() && !p.Graph
}

// platformStanza is Platform as it is written.
type platformStanza struct {
	Graph         bool                 `json:"graph,omitempty"`
	Channels      []releaseChannelForm `json:"channels,omitempty"`
	Architectures []string             `json:"architectures,omitempty"`
	Platforms     []platformForm       `json:"platforms,omitempty"`
	Release       string               `json:"release,omitempty"`
	KubeVirt      bool                 `json:"kubeVirtContainer,omitempty"`
}

type releaseChannelForm struct {
	Name         string        `json:"name"`
	Type         releases.Type `json:"type,omitempty"`
	MinVersion   string        `json:"minVersion,omitempty"`
	MaxVersion   string        `json:"maxVersion,omitempty"`
	ShortestPath bool          `json:"shortestPath,omitempty"`
	Full         bool          `json:"full,omitempty"`
}

// form returns the written form; nil if nothing is wanted. pinned has the versions that channels are pinned to, by their
// names.
func (p *Platform) form(pinned map[string]string) *platformStanza {
	if p.IsZero() && !p.KubeVirt {
		return nil
	}
	f := &platformStanza{Graph: p.Graph, Architectures: p.Architectures, Platforms: platforms(p.Platforms),
		Release: p.written, KubeVirt: p.KubeVirt}
	for _, c := range p.Channels {
		one := releaseChannelForm(c)
		if v := pinned[c.Name]; v != "" {
			one.MinVersion, one.MaxVersion, one.ShortestPath, one.Full = v, v, false, false
		}
		f.Channels = append(f.Channels, one)
	}
	return f
}

// readPlatform reads the stanza about releases.
func (r *reader) readPlatform(n node) Platform {
	p := Platform{Graph: n.flag("graph"), KubeVirt: n.flag("kubeVirtContainer"), Platforms: n.platforms(),
		written: n.text("release")}
	if p.written != "" {
		var err error
		if p.Release, err = ParseRef(p.written); err == nil && !p.Release.InRegistry() {
			err = errors.New(fault.Quote(p.written) + " names no registry")
		}
		if err == nil && n.checkRegistry("release", p.Release) != nil {
			p.Release = Ref{}
		} else if err != nil {
			n.wrong("release", err.Error(), "release: quay.io/openshift-release-dev/ocp-release:4.16.1-x86_64, or by digest")
			p.Release = Ref{}
		}
		if len(n.objects("channels")) > 0 || n.fields["architectures"] != nil {
			n.r.warn(n.at.In("release"), n.field("release"), "channels and architectures are not looked at beside a release",
				"remove them, or the release")
		}
	}
	items, _ := n.fields["architectures"].([]any)
	for i, item := range items {
		name, _ := item.(string)
		switch _, wrong := item.(misfit); {
		case wrong, slices.Contains(p.Architectures, name):
		case !slices.Contains(releases.Architectures(), name):
			r.wrong(n.at.In("architectures").In(i), n.field("architectures"), fault.Quote(name)+" is no architecture of releases",
				"one of "+strings.Join(releases.Architectures(), ", "))
		default:
			p.Architectures = append(p.Architectures, name)
		}
	}
	if len(p.Architectures) > 0 && len(p.Platforms) > 0 {
		n.wrong("platforms", "architectures and platforms exclude each other", "platforms copies parts of the multi-architecture "+
			"releases, architectures whole releases")
	}
	names := map[string]int{}
	for _, item := range n.objects("channels") {
		c := releases.Channel{Name: item.text("name"), Type: releases.Type(item.text("type")), MinVersion: item.text("minVersion"),
			MaxVersion: item.text("maxVersion"), ShortestPath: item.flag("shortestPath"), Full: item.flag("full")}
		item.checkUnique("release channel", c.Name, names)
		if c.Type == "" {
			c.Type = releases.OCP
		}
		if c.Type != releases.OCP && c.Type != releases.OKD && !item.misfit("type") {
			item.wrong("type", fault.Quote(string(c.Type))+" is no type of channels", "ocp or okd")
		}
		for _, name := range []string{"minVersion", "maxVersion"} {
			if text := item.text(name); text != "" {
				if _, err := versions.Parse(text); err != nil {
					item.wrong(name, fault.Quote(text)+" is no version of a release", "a whole one without v, such as 4.16.0 or 4.16.0-rc.1")
				}
			}
		}
		p.Channels = append(p.Channels, c)
	}
	return p
}
