package list

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// ImageOptions select the images to list. The zero value lists all.
type ImageOptions struct {
	// Package is the only package whose images are listed; empty means all.
	Package string
	// Channels are the only channels whose bundles count; empty means all.
	Channels []string
	// HeadsOnly counts only the bundles at the heads of channels.
	HeadsOnly bool
}

// The kinds of images.
const (
	bundleImage  = "bundle"  // a bundle's own image
	relatedImage = "related" // an image that a bundle needs at run time
)

// Image is one image that a catalog needs, with the items that need it. All slices are sorted, without duplicates.
type Image struct {
	Image    string       `json:"image"`
	Kinds    []string     `json:"kinds"`
	Packages []string     `json:"packages"`
	Channels []channelRef `json:"channels"`
	Bundles  []bundleRef  `json:"bundles"`
}

// channelRef is the name of a channel with its package.
type channelRef struct {
	Package string `json:"package"`
	Name    string `json:"name"`
}

// bundleRef is the name of a bundle with its package.
type bundleRef struct {
	Package string `json:"package"`
	Name    string `json:"name"`
}

// Images lists the images of bundles and their related images, sorted and without duplicates. A bundle without an image
// has its manifests in the catalog and contributes only related images.
func (l *Listing) Images(o ImageOptions) ([]Image, error) {
	packages, err := l.packagesNamed(o.Package)
	if err != nil {
		return nil, err
	}
	uses := imageUses{}
	missing := map[string]bool{}
	for _, name := range o.Channels {
		missing[name] = true
	}
	for i := range packages {
		for j := range packages[i].channels {
			ch := &packages[i].channels[j]
			if len(o.Channels) > 0 && !slices.Contains(o.Channels, ch.name) {
				continue
			}
			delete(missing, ch.name)
			for k := range ch.entries {
				if e := &ch.entries[k]; !o.HeadsOnly || e.Name == ch.head {
					uses.add(e)
				}
			}
		}
	}
	if len(missing) > 0 {
		e := &declcfg.NotFoundError{Kind: "channel", Name: slices.Sorted(maps.Keys(missing))[0]}
		for _, p := range packages {
			for _, ch := range p.channels {
				e.Known = append(e.Known, ch.name)
			}
		}
		return nil, e
	}
	return uses.images(), nil
}

// imageUses collects the users of each image.
type imageUses map[string]*imageUse

type imageUse struct {
	bundle, related bool
	channels        []channelRef // sorted
	bundles         []bundleRef
}

// add adds the images of an entry. Entries come sorted by channel.
func (u imageUses) add(e *entry) {
	channel, bundle := channelRef{e.Package, e.Channel}, bundleRef{e.Package, e.Name}
	use := func(image string) *imageUse {
		x := u[image]
		if x == nil {
			x = &imageUse{}
			u[image] = x
		}
		if n := len(x.channels); n == 0 || x.channels[n-1] != channel {
			x.channels = append(x.channels, channel)
		}
		if n := len(x.bundles); n == 0 || x.bundles[n-1] != bundle {
			x.bundles = append(x.bundles, bundle)
		}
		return x
	}
	if e.Image != "" {
		use(e.Image).bundle = true
	}
	for _, r := range e.related {
		// opm's related images include the bundle's own.
		if r != e.Image && r != "" {
			use(r).related = true
		}
	}
}

func (u imageUses) images() []Image {
	out := make([]Image, 0, len(u))
	for _, name := range slices.Sorted(maps.Keys(u)) {
		use := u[name]
		row := Image{Image: name, Channels: use.channels}
		if use.bundle {
			row.Kinds = append(row.Kinds, bundleImage)
		}
		if use.related {
			row.Kinds = append(row.Kinds, relatedImage)
		}
		slices.SortFunc(use.bundles, func(a, b bundleRef) int {
			return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
		})
		row.Bundles = slices.Compact(use.bundles)
		for _, c := range row.Channels {
			if n := len(row.Packages); n == 0 || row.Packages[n-1] != c.Package {
				row.Packages = append(row.Packages, c.Package)
			}
		}
		out = append(out, row)
	}
	return out
}

// ImageGroup has the images of one package, channel or bundle. Channel and Bundle are empty if they do not apply.
type ImageGroup struct {
	Package string   `json:"package"`
	Channel string   `json:"channel,omitempty"`
	Bundle  string   `json:"bundle,omitempty"`
	Images  []string `json:"images"`
}

type groupKey struct{ Package, Channel, Bundle string }

// The keys of [GroupImages].
const (
	ByPackage = "package"
	ByChannel = "channel"
	ByBundle  = "bundle"
)

// GroupImages groups images by the items that need them: [ByPackage], [ByChannel] or [ByBundle]. An image is in every
// group that needs it. Groups and their images are sorted.
func GroupImages(rows []Image, by string) ([]ImageGroup, error) {
	groups := map[groupKey][]string{}
	for _, r := range rows {
		switch by {
		case ByPackage:
			for _, p := range r.Packages {
				groups[groupKey{Package: p}] = append(groups[groupKey{Package: p}], r.Image)
			}
		case ByChannel:
			for _, c := range r.Channels {
				key := groupKey{Package: c.Package, Channel: c.Name}
				groups[key] = append(groups[key], r.Image)
			}
		case ByBundle:
			for _, b := range r.Bundles {
				key := groupKey{Package: b.Package, Bundle: b.Name}
				groups[key] = append(groups[key], r.Image)
			}
		default:
			return nil, fmt.Errorf("images can be grouped by %s, %s or %s, not by %q", ByPackage, ByChannel, ByBundle,
				by)
		}
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel),
			cmp.Compare(a.Bundle, b.Bundle))
	})
	out := make([]ImageGroup, 0, len(keys))
	for _, k := range keys {
		out = append(out, ImageGroup{Package: k.Package, Channel: k.Channel, Bundle: k.Bundle, Images: groups[k]})
	}
	return out, nil
}

// ImageTable returns the table of grouped images: one row per image and group.
func ImageTable(groups []ImageGroup, by string) Table {
	t := Table{Header: []string{"PACKAGE", "IMAGE"}}
	switch by {
	case ByChannel:
		t.Header = []string{"PACKAGE", "CHANNEL", "IMAGE"}
	case ByBundle:
		t.Header = []string{"PACKAGE", "BUNDLE", "IMAGE"}
	}
	for _, g := range groups {
		for _, image := range g.Images {
			switch by {
			case ByChannel:
				t.Rows = append(t.Rows, []string{g.Package, g.Channel, image})
			case ByBundle:
				t.Rows = append(t.Rows, []string{g.Package, g.Bundle, image})
			default:
				t.Rows = append(t.Rows, []string{g.Package, image})
			}
		}
	}
	return t
}
