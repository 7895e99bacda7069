package edit

import (
	"bytes"
	"fmt"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// chooseDefault sets the default channel: the one declared by the bundle with the highest version among those that
// declare one. The highest of the existing bundles counts as declaring the former default channel.
func (e *packageEdit) chooseDefault() {
	p := e.part
	var best *version
	declared, why := "", ""
	if p.pkg.DefaultChannel != "" {
		declared, why = p.pkg.DefaultChannel, asBefore(KindDefaultChannel)
		for _, m := range e.old.bundles {
			if best == nil || m.version.rank(*best) > 0 {
				best = &m.version
			}
		}
	}
	for _, n := range e.news {
		if n.DefaultChannel != "" && p.bundles[n.name] != nil && (best == nil || n.version.rank(*best) >= 0) {
			best, declared, why = &n.version, n.DefaultChannel,
				fmt.Sprintf("bundle %s declares it, which is the highest version that declares one", n.name)
		}
	}
	if p.channels[declared] == nil && len(p.channels) == 1 {
		declared, why = sorted(p.channels)[0], "the package has no other channel"
	}
	if p.channels[declared] == nil {
		said := "no bundle declares one"
		if declared != "" {
			said = fmt.Sprintf("%q is declared", declared)
		}
		e.found = append(e.found, found{Problem: Problem{Package: p.name, Kind: ErrDefaultChannel,
			Message: fmt.Sprintf("unable to determine default channel among channel heads: package %q has the "+
				"channels %q, and %s: set the annotation %s of the bundle with the highest version to one of them",
				p.name, sorted(p.channels), said, bundle.AnnotationDefaultChannel)}})
		return
	}
	p.pkg.DefaultChannel = declared
	e.why.set(KindDefaultChannel, "", "", declared, why)
	e.chooseIcon()
}

// chooseIcon gives the package the icon of the head of its default channel, if the package is new or had the icon of
// the former head. Any other icon was set on purpose.
func (e *packageEdit) chooseIcon() {
	icon, known := e.headIcon(e.part)
	if !known {
		return
	}
	if !e.old.empty() {
		former, known := e.headIcon(e.old)
		if !known || !sameIcon(former, e.part.pkg.Icon) {
			return
		}
	}
	e.part.pkg.Icon = icon
}

// headIcon returns the icon of the head of the default channel; known is false if the catalog does not contain it.
func (e *packageEdit) headIcon(p *part) (icon *declcfg.Icon, known bool) {
	c := p.channels[p.pkg.DefaultChannel]
	if c == nil {
		return nil, false
	}
	heads := c.heads()
	if len(heads) != 1 || p.bundles[heads[0]] == nil {
		return nil, false
	}
	m := p.bundles[heads[0]]
	if m.added != nil {
		return m.added.Icon, true
	}
	said := e.manifest(m.blob)
	if said == nil || !said.CSV {
		return nil, false
	}
	return said.Icon, true
}

func sameIcon(a, b *declcfg.Icon) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.MediaType == b.MediaType && bytes.Equal(a.Data, b.Data)
}
