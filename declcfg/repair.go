package declcfg

import (
	"fmt"
	"slices"
	"strings"
)

// Repair is one change made by [Catalog.Repair]. Package, Channel and Bundle locate it; those that do not apply are
// empty.
type Repair struct {
	Package, Channel, Bundle string
	// Field is the changed field: image, relatedImages, replaces, skips, entries, defaultChannel.
	Field string
	// Before and After are the values; empty where there is none.
	Before, After string
	Reason        string
}

// Repair repairs what breaks a rule or leads nowhere, if there is only one way to do so, and returns the changes:
//
//   - a transport or blanks around the name of an image are removed;
//   - a related image that is still not a pull spec is dropped;
//   - a replaced bundle without an entry in the channel is skipped instead: upgrades from it stay, and the channel ends
//     there;
//   - an entry no longer replaces or skips itself, or a bundle without a name;
//   - a repeated entry is dropped;
//   - the default channel of a package with one channel becomes that channel.
//
// Changed values share no memory with the old ones. A second Repair finds nothing to do.
func (c *Catalog) Repair() []Repair {
	var r repairer
	channels := map[string][]string{}
	for i := range c.Channels {
		channels[c.Channels[i].Package] = append(channels[c.Channels[i].Package], c.Channels[i].Name)
		r.repairChannel(&c.Channels[i])
	}
	for i := range c.Packages {
		p := &c.Packages[i]
		if has := channels[p.Name]; len(has) == 1 && has[0] != "" && p.DefaultChannel != has[0] {
			r.add(Repair{
				Package: p.Name, Field: "defaultChannel", Before: p.DefaultChannel, After: has[0],
				Reason: "it is the only channel of the package",
			})
			p.DefaultChannel = has[0]
		}
	}
	for i := range c.Bundles {
		r.repairBundle(&c.Bundles[i])
	}
	return r.made
}

type repairer struct{ made []Repair }

func (r *repairer) add(made Repair) { r.made = append(r.made, made) }

func (r *repairer) repairBundle(b *Bundle) {
	at := Repair{Package: b.Package, Bundle: b.Name}
	if image, ok := plainPullSpec(b.Image); ok {
		at.Field, at.Before, at.After, at.Reason = "image", b.Image, image, "a pull spec has no transport and no blanks"
		b.Image = image
		r.add(at)
	}
	at.Field = "relatedImages"
	wrong := func(i RelatedImage) bool { return i.Image != "" && checkPullSpec(i.Image) != nil }
	if !slices.ContainsFunc(b.RelatedImages, wrong) {
		return
	}
	var kept []RelatedImage
	for _, image := range b.RelatedImages {
		if !wrong(image) {
			kept = append(kept, image)
			continue
		}
		at.Before, at.After, at.Reason = image.Image, "", "it is no pull spec"
		if plain, ok := plainPullSpec(image.Image); ok {
			at.After, at.Reason = plain, "a pull spec has no transport and no blanks"
			image.Image = plain
			if !slices.Contains(kept, image) && !slices.Contains(b.RelatedImages, image) {
				kept = append(kept, image)
			}
		}
		r.add(at)
	}
	b.RelatedImages = kept
}

// plainPullSpec returns the pull spec in a text that has a transport in front of it or blanks around it.
func plainPullSpec(text string) (string, bool) {
	if text == "" || checkPullSpec(text) == nil {
		return "", false
	}
	plain := strings.TrimSpace(text)
	for _, transport := range []string{"docker://", "oci://"} {
		if rest, ok := strings.CutPrefix(plain, transport); ok {
			plain = rest
			break
		}
	}
	return plain, plain != "" && checkPullSpec(plain) == nil
}

func sameEntry(a, b ChannelEntry) bool {
	return a.Name == b.Name && a.Replaces == b.Replaces && a.SkipRange == b.SkipRange && slices.Equal(a.Skips, b.Skips)
}

func (r *repairer) repairChannel(c *Channel) {
	names := map[string]bool{}
	for _, e := range c.Entries {
		names[e.Name] = true
	}
	seen := map[string]int{}
	var kept []ChannelEntry
	before := len(r.made)
	for _, e := range c.Entries {
		at := Repair{Package: c.Package, Channel: c.Name, Bundle: e.Name}
		if i, ok := seen[e.Name]; ok && sameEntry(e, kept[i]) {
			at.Field, at.Before, at.Reason = "entries", e.Name, "the entry is there twice"
			r.add(at)
			continue
		}
		seen[e.Name] = len(kept)
		kept = append(kept, e)
	}
	for i := range kept {
		e := &kept[i]
		at := Repair{Package: c.Package, Channel: c.Name, Bundle: e.Name}
		nowhere := func(skip string) bool { return skip == "" || skip == e.Name }
		if slices.ContainsFunc(e.Skips, nowhere) {
			at.Field, at.Before = "skips", fmt.Sprintf("%q", e.Skips)
			at.Reason = "a bundle skips neither itself nor one without a name"
			e.Skips = slices.DeleteFunc(slices.Clone(e.Skips), nowhere)
			at.After = fmt.Sprintf("%q", e.Skips)
			r.add(at)
		}
		at.Field, at.Before, at.After = "replaces", e.Replaces, ""
		switch {
		case e.Replaces == "":
		case e.Replaces == e.Name:
			at.Reason = "a bundle does not replace itself"
			e.Replaces = ""
			r.add(at)
		case !names[e.Replaces]:
			at.Reason = "the channel has no entry for the bundle; it is skipped instead, so that upgrades from it stay"
			if !slices.Contains(e.Skips, e.Replaces) {
				e.Skips = append(slices.Clip(e.Skips), e.Replaces)
			}
			e.Replaces = ""
			r.add(at)
		}
	}
	if len(r.made) > before {
		c.Entries = kept
	}
}
