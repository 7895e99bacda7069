package rules

import (
	"cmp"
	"slices"
)

// State says whether OLM v1 installs a bundle.
type State string

// The states of a bundle.
const (
	Installable State = "installable"
	Refused     State = "refused"
	// Unknown is the state of a bundle of which a catalog has no manifests: its image decides.
	Unknown State = "unknown"
)

// Source says where manifests were read.
type Source string

// The sources of manifests: the properties olm.bundle.object of a catalog, an image, a directory.
const (
	FromCatalog   Source = "catalog"
	FromImage     Source = "image"
	FromDirectory Source = "directory"
)

// Installability says whether OLM v1 installs a bundle.
type Installability struct {
	// Target is the directory of the bundle or the catalog, in a repository of operators.
	Target   string   `json:"target,omitempty"`
	Package  string   `json:"package"`
	Bundle   string   `json:"bundle"`
	Version  string   `json:"version,omitempty"`
	Channels []string `json:"channels"`
	// Heads are the channels whose newest bundle it is.
	Heads []string `json:"heads,omitempty"`
	Image string   `json:"image,omitempty"`
	State State    `json:"state"`
	// Manifests says where the manifests were read from which the state follows; it is empty if none were read. A
	// cluster installs those of the image.
	Manifests Source `json:"manifests,omitempty"`
	// Reasons are the rules that the bundle breaks, if it is refused.
	Reasons []string `json:"reasons,omitempty"`
}

type bundleKey struct{ target, pkg, name string }

// SetBundle records a bundle with its state as far as its manifests are known; what refuses it follows from the
// findings. A second call for the same bundle replaces the first.
func (r *Run) SetBundle(b Installability) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.Target = r.at.Target
	key := bundleKey{b.Target, b.Package, b.Bundle}
	if i, ok := r.index[key]; ok {
		r.bundles[i] = b
		return
	}
	r.index[key] = len(r.bundles)
	r.bundles = append(r.bundles, b)
}

// SetKnown says that the manifests of a bundle, which [Run.Unknown] returned, have been read from its image.
func (r *Run) SetKnown(pkg, bundle string) { r.setManifests(pkg, bundle, FromImage) }

// setManifests says where the manifests of a bundle have been read.
func (r *Run) setManifests(pkg, bundle string, from Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := r.index[bundleKey{r.at.Target, pkg, bundle}]; ok {
		r.bundles[i].State, r.bundles[i].Manifests = Installable, from
	}
}

// Unknown returns the bundles whose manifests are not known, in the order in which they were recorded.
func (r *Run) Unknown() []Installability {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Installability
	for _, b := range r.bundles {
		if b.State == Unknown {
			out = append(out, b)
		}
	}
	return out
}

// refuse notes that a rule of OLM v1 refuses a bundle or, if bundle is empty, all bundles of a package.
func (r *Run) refuse(pkg, bundle, rule string) {
	r.refused[bundleKey{r.at.Target, pkg, bundle}] = append(r.refused[bundleKey{r.at.Target, pkg, bundle}], rule)
}

// installability returns the bundles with what refuses them, sorted by package, then in the order of the catalog.
func (r *Run) installability() []Installability {
	out := slices.Clone(r.bundles)
	for i := range out {
		b := &out[i]
		reasons := slices.Concat(r.refused[bundleKey{b.Target, b.Package, ""}], r.refused[bundleKey{b.Target, b.Package, b.Bundle}])
		slices.Sort(reasons)
		if b.Reasons = slices.Compact(reasons); len(b.Reasons) > 0 {
			b.State = Refused
		}
	}
	slices.SortStableFunc(out, func(a, b Installability) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Package, b.Package))
	})
	return out
}

// channelState sums up the bundles of a channel.
type channelState struct {
	Package, Channel string
	// Head is the newest bundle, HeadState whether OLM v1 installs it.
	Head      string
	HeadState State
	// Installable, Refused and Unknown are how many bundles there are of each state.
	Installable, Refused, Unknown int
	// Reasons are the rules for which bundles are refused.
	Reasons []string
}

// Channels sums up the bundles of the report by package and channel. Those of no channel have an empty one.
func (r *Report) Channels() []channelState {
	type key struct{ pkg, channel string }
	index := map[key]int{}
	var out []channelState
	for _, b := range r.Bundles {
		channels := b.Channels
		if len(channels) == 0 {
			channels = []string{""}
		}
		for _, name := range channels {
			k := key{b.Package, name}
			i, ok := index[k]
			if !ok {
				i, index[k] = len(out), len(out)
				out = append(out, channelState{Package: b.Package, Channel: name})
			}
			out[i].add(b)
		}
	}
	slices.SortStableFunc(out, func(a, b channelState) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel))
	})
	return out
}

func (s *channelState) add(b Installability) {
	switch b.State {
	case Installable:
		s.Installable++
	case Refused:
		s.Refused++
	default:
		s.Unknown++
	}
	if slices.Contains(b.Heads, s.Channel) {
		s.Head, s.HeadState = b.Bundle, b.State
	}
	for _, r := range b.Reasons {
		if !slices.Contains(s.Reasons, r) {
			s.Reasons = append(s.Reasons, r)
		}
	}
	slices.Sort(s.Reasons)
}

// Unknown returns how many bundles have the state [Unknown].
func (r *Report) Unknown() int {
	return r.bundles(func(b Installability) bool { return b.State == Unknown })
}

// Unread returns how many bundles the manifests in the catalog alone say to be [Installable]: their images have not been
// read.
func (r *Report) Unread() int {
	return r.bundles(func(b Installability) bool { return b.State == Installable && b.Manifests == FromCatalog })
}

func (r *Report) bundles(is func(Installability) bool) int {
	n := 0
	for _, b := range r.Bundles {
		if is(b) {
			n++
		}
	}
	return n
}
