package template

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/shape"
)

// archetype is the stability of a channel's bundles. The constants are in ascending order.
type archetype int

const archetypes = 3

func (a archetype) String() string { return [archetypes]string{"candidate", "fast", "stable"}[a] }

// channelKind says whether the bundles of a channel share their major version only, or also their minor version.
type channelKind int

const (
	major channelKind = iota
	minor
)

// semverTemplate is a template of type Semver.
type semverTemplate struct {
	generate   [2]bool // by channelKind
	preference channelKind
	bundles    [archetypes][]imageRef
}

// The prefixes of opm's messages about a semver template.
const (
	opmRead    = "render: unable to read file: "
	opmDecode  = opmRead + "error unmarshaling JSON: while decoding JSON: "
	opmBundles = "render: unable to post-process bundle info: "
)

func (p *parser) semver(members []member, schema string) body {
	t := &semverTemplate{}
	preference, preferencePath := "", []any(nil)
	unknown := func(m member, known []field) {
		message := fmt.Sprintf("unknown field %q", fault.Short(m.key))
		p.addProblem(reported{Problem{Text: message + suggestion(m, known)}, m.path, opmDecode + "json: " + message})
	}
	flag := func(kind channelKind) func(node) {
		return func(n node) {
			if p.want(shape.Boolean, opmDecode, n) {
				t.generate[kind] = string(n.raw) == "true"
			}
		}
	}
	known := []field{
		{"schema", func(node) {}},
		{"generateMajorChannels", flag(major)},
		{"generateMinorChannels", flag(minor)},
		{"defaultChannelTypePreference", func(n node) {
			if p.want(shape.String, opmDecode, n) {
				preference, preferencePath = n.str(), n.path
			}
		}},
	}
	for a := range archetypes {
		known = append(known, field{archetype(a).String(), func(n node) {
			if p.want(shape.Mapping, opmDecode, n) {
				t.bundles[a] = p.semverBundles(n, unknown)
			}
		}})
	}
	p.object(opmDecode, members, known, unknown)
	if schema != schemaSemver {
		p.addSchema(lookupPath(members, "schema"), opmRead, "readFile: input file has unknown schema, should be %q",
			schemaSemver)
	}
	t.prefer(p, preference, preferencePath)
	return t
}

// semverBundles reads the list of images of an archetype.
func (p *parser) semverBundles(n node, unknown func(member, []field)) (refs []imageRef) {
	p.object(opmDecode, n.members(), []field{{"bundles", func(list node) {
		for _, item := range p.items(opmDecode, list) {
			ref := imageRef{path: item.path}
			if !p.want(shape.Mapping, opmDecode, item) {
				continue
			}
			before := len(p.problems.Problems)
			p.object(opmDecode, item.members(), []field{{"image", func(v node) {
				if p.want(shape.String, opmDecode, v) {
					ref.image, ref.path = v.str(), v.path
				}
			}}}, unknown)
			if ref.image == "" && len(p.problems.Problems) == before {
				p.add(item.path, opmRead, "%s has no image", canon.PathName(item.path))
			}
			refs = append(refs, ref)
		}
	}}}, unknown)
	return refs
}

// prefer determines which channels are generated, and which kind of channel is preferred as the default.
func (t *semverTemplate) prefer(p *parser, preference string, path []any) {
	if !t.generate[major] && !t.generate[minor] {
		t.generate[minor] = true
	}
	const mismatch = "schema attribute mismatch: DefaultChannelTypePreference is %q, but Generate%sChannels is not set"
	switch preference {
	case "":
		t.preference = major
		if t.generate[minor] {
			t.preference = minor
		}
	case "major":
		if t.preference = major; !t.generate[major] {
			p.add(path, opmRead, mismatch, "major", "Major")
		}
	case "minor":
		if t.preference = minor; !t.generate[minor] {
			p.add(path, opmRead, mismatch, "minor", "Minor")
		}
	default:
		p.add(path, opmRead, "unknown DefaultChannelTypePreference: %q\nValid values are 'major' or 'minor'",
			fault.Short(preference))
	}
}

func (t *semverTemplate) images() (refs []imageRef) {
	for _, list := range t.bundles {
		refs = append(refs, list...)
	}
	return refs
}

// assemble builds the package, its channels and its bundles.
func (t *semverTemplate) assemble(r *run) *declcfg.Catalog {
	c := &declcfg.Catalog{}
	seen := map[string]bool{}
	for _, ref := range t.images() {
		if !seen[ref.image] {
			seen[ref.image] = true
			c.Bundles = append(c.Bundles, r.rendered[ref.image].bundle)
		}
	}
	if len(c.Bundles) == 0 {
		r.add(nil, "render: ", "no bundles specified or no bundles could be rendered")
		return c
	}
	pkg, versions := t.versions(r)
	if len(r.problems.Problems) > 0 {
		return c
	}
	channels, head := t.channels(pkg, versions)
	c.Channels = channels
	blob := declcfg.Package{Name: pkg, DefaultChannel: head.channel}
	if head.image != "" {
		describe(&blob, r.rendered[head.image].original, r.options.Warn)
	}
	c.Packages = []declcfg.Package{blob}
	return c
}
