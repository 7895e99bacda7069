package imageset

import (
	"strings"

	"github.com/opencontainers/go-digest"
)

// Blocked reports whether an image is left out, by which rule, and whether that matches the name at the destination
// only. A rule is matched with the source without its transport, as written and with its digest if that is known, and
// with the destination below t: the registry and the path of the target do not count, unlike with oc-mirror, where a
// rule that happens to match them blocks everything.
func (s *Set) Blocked(source Ref, resolved digest.Digest, destination Ref,
	t Target) (rule Blocked, byDestination, blocked bool) {
	names := []string{source.Name()}
	if resolved != "" && resolved != source.Digest {
		names = append(names, source.Repository()+"@"+resolved.String())
	}
	below := destination.Name()
	if prefix := t.String(); prefix != "" {
		below = strings.TrimPrefix(strings.TrimPrefix(below, prefix), "/")
	}
	for _, rule := range s.BlockedImages {
		for _, name := range names {
			if rule.Pattern.MatchString(name) {
				return rule, false, true
			}
		}
	}
	for _, rule := range s.BlockedImages {
		if below != "" && rule.Pattern.MatchString(below) {
			return rule, true, true
		}
	}
	return Blocked{}, false, false
}
