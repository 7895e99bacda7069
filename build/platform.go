package build

import (
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// PlatformName is a platform as a flag has it.
func PlatformName(p v1.Platform) string {
	name := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		name += "/" + p.Variant
	}
	return name
}
