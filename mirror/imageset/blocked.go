package imageset

import (
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Blocked is a rule of images that are left out.
type Blocked struct {
	// Name is the expression as written, Pattern its compiled form. It is not anchored.
	Name    string
	Pattern *regexp.Regexp
	Line    int
}

// blockedForm is a rule as it is written.
type blockedForm struct {
	Name string `json:"name"`
}

// readBlocked reads an entry of blockedImages; nothing of one that has no name.
func (r *reader) readBlocked(n node) (Blocked, bool) {
	b := Blocked{Name: n.text("name"), Line: n.line()}
	if n.misfit("name") {
		return b, false
	}
	var err error
	if b.Pattern, err = regexp.Compile(b.Name); err != nil {
		n.wrong("name", fault.Quote(b.Name)+" is no regular expression: "+fault.Clip(err.Error(), 500), "")
	} else if b.Name == "" {
		n.wrong("name", "an empty expression would leave out every image", "name: registry/path")
	}
	return b, true
}

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
