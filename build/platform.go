package build

import (
	"fmt"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// ParsePlatform parses linux/ARCH or linux/ARCH/VARIANT.
func ParsePlatform(text string) (v1.Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" {
		return v1.Platform{}, fmt.Errorf("invalid platform %q, expected linux/ARCH or linux/ARCH/VARIANT", text)
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}

// PlatformName is a platform as a flag has it.
func PlatformName(p v1.Platform) string {
	name := p.OS + "/" + p.Architecture
	if p.Variant != "" {
		name += "/" + p.Variant
	}
	return name
}
