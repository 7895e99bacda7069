// Package platform compares the platform of an image with those that are wanted, and names platforms.
//
// A platform is what the OCI image specification has in the entries of an index (image-index.md, "platform") and in the
// configuration of an image (config.md): an operating system and an architecture in Go's names, and for some
// architectures a variant. The versions and features of an operating system are not compared: the specification leaves
// it open what they mean, and images for Linux have none.
package platform

import (
	"cmp"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Matches tells whether an image for a platform is among those that are wanted; if none is named, all are.
//
// The operating system and the architecture are equal, and the variant is equal or not asked for: linux/arm stands for
// all variants of it. An image without a variant is for the one that its architecture has by default, as docker and
// containerd read it: arm is v7, arm64 is v8 and amd64 is v1. So an image for linux/arm64 is
// one for linux/arm64/v8, and an image for linux/arm is none for linux/arm/v6.
func Matches(image v1.Platform, wanted ...v1.Platform) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w v1.Platform) bool {
		return w.OS == image.OS && w.Architecture == image.Architecture &&
			(w.Variant == "" || variant(w) == variant(image))
	})
}

// MatchesAnyVariant is like [Matches] for one platform, whatever the variant: of many images the configuration does not
// say it, and an image for an older variant runs on a newer one.
func MatchesAnyVariant(image, wanted v1.Platform) bool {
	wanted.Variant = ""
	return Matches(image, wanted)
}

// variant returns the variant of a platform, or that which its architecture has by default.
func variant(p v1.Platform) string {
	switch {
	case p.Variant != "":
		return p.Variant
	case p.Architecture == "arm":
		return "v7"
	case p.Architecture == "arm64":
		return "v8"
	case p.Architecture == "amd64":
		return "v1"
	}
	return ""
}

// Equal tells whether two platforms are written in the same way: [Name] returns the same for them.
func Equal(a, b v1.Platform) bool {
	return a.OS == b.OS && a.Architecture == b.Architecture && a.Variant == b.Variant
}

// AppendNew appends those platforms that the list does not have yet.
func AppendNew(list []v1.Platform, more ...v1.Platform) []v1.Platform {
	for _, p := range more {
		if !slices.ContainsFunc(list, func(q v1.Platform) bool { return Equal(p, q) }) {
			list = append(list, p)
		}
	}
	return list
}

// Complete returns a platform whose operating system and architecture are set: those that are not are linux and amd64,
// as older builders leave the fields empty.
func Complete(p v1.Platform) v1.Platform {
	p.OS, p.Architecture = cmp.Or(p.OS, "linux"), cmp.Or(p.Architecture, "amd64")
	return p
}

// Plain returns the platform without the versions and features of its operating system.
func Plain(p v1.Platform) v1.Platform {
	return v1.Platform{OS: p.OS, Architecture: p.Architecture, Variant: p.Variant}
}

// Name returns OS/ARCHITECTURE[/VARIANT], as flags have it.
func Name(p v1.Platform) string {
	name := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		name += "/" + p.Variant
	}
	return name
}
