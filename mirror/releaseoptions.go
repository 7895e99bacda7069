package mirror

import (
	"regexp"

	"github.com/operator-bindery/bindery/internal/webclient"
	"github.com/operator-bindery/bindery/mirror/releases"
	"github.com/operator-bindery/bindery/mirror/releases/signed"
)

// ReleaseOptions are how releases of OpenShift and OKD are found and verified.
type ReleaseOptions struct {
	// Client asks the servers of graphs and signatures, and gets the data of the graph image. With [FromDisk] no server is
	// asked.
	Client *webclient.Client
	// UpdateURL, unless empty, is the graph server of OpenShift in place of the vendor's, or file://DIR with its graphs:
	// ARCHITECTURE-CHANNEL.json.
	UpdateURL string
	// Signatures are how signatures are verified, by the vendor's keys if it has none. Stored and Client are those of the
	// run.
	Signatures signed.Options
	// Unsigned mirrors the release that the image set names by itself without a signature. Those of channels are always
	// verified.
	Unsigned bool
	// VersionFilter, unless nil, matches the versions that count as the first and last of a channel.
	VersionFilter *regexp.Regexp
	// NoCrossChannel leaves out the path between several channels.
	NoCrossChannel bool
	// Pin writes the versions that are chosen into the pinned image set, where a channel has one.
	Pin bool
	// GraphData is the archive for the graph image, a URL or a file, and GraphBase the image that it stands on; empty are
	// those of the vendor. PinGraph names the graph image by its digest.
	GraphData, GraphBase string
	PinGraph             bool
}

// request is what the image set asks of the graphs.
func (r *ReleaseOptions) request(o *Options) *releases.Request {
	p := &o.Set.Platform
	out := &releases.Request{Channels: p.Channels, Architectures: p.Architectures, VersionFilter: r.VersionFilter, Compat: o.Compat,
		NoCrossChannel: r.NoCrossChannel, Strict: o.Filter.Strict}
	if len(p.Platforms) > 0 {
		out.Architectures = []string{"multi"}
	}
	return out
}
