package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"sync"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/guard"
)

// content returns a digest of what the page of a manifest shows.
func (m *manifest) content() string {
	h := sha256.New()
	h.Write([]byte(m.name + "\x00"))
	h.Write(m.text)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// aboutPage is about how many bytes a page of a package, channel, bundle or of changes has.
const aboutPage = 13 << 10

// aboutSize is about how many bytes the pages of a manifest have: it itself as YAML with an address for each line, and if it is a
// definition, its fields.
func (m *manifest) aboutSize() int64 {
	size := int64(min(len(m.text), maxFile)) * 5 / 2
	if len(m.defined) > 0 {
		size += int64(len(m.text)) * 7 / 2
	}
	return size
}

// plan finds the heads, if no other bundles are written, and says how much will be written: the manifests that differ are
// most of a site.
func (s *staticSite) plan(ctx context.Context) error {
	if s.o.HeadsOnly {
		s.heads = map[[2]string]bool{}
		if err := s.findHeads(ctx); err != nil {
			return err
		}
	}
	if s.o.Planned == nil {
		return nil
	}
	var mu sync.Mutex
	pages, manifests, bytes, known := 2, 0, int64(0), map[string]bool{}
	var bundles []blob
	for i := range s.c.packages {
		pages += 3
		for _, b := range s.c.blobsOf(s.c.packages[i].name) {
			if b.schema == declcfg.SchemaChannel {
				pages++
			}
			if b.schema != declcfg.SchemaBundle || s.leavesOut("bundle", []string{"package", b.pkg, "name", b.name}) {
				continue
			}
			pages += 2
			bundles = append(bundles, b)
		}
	}
	err := guard.Each(ctx, s.jobs(), bundles, func(_ context.Context, _ int, b blob) error {
		read, err := s.c.bundle(&b)
		if err != nil {
			return err
		}
		for _, m := range manifestsOf(read) {
			key := b.pkg + "\x00" + m.content()
			mu.Lock()
			if !known[key] {
				known[key] = true
				manifests, bytes = manifests+1+len(m.defined), bytes+m.aboutSize()
			}
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.o.Planned(pages+manifests, bytes+int64(pages)*aboutPage)
	return nil
}

// findHeads notes the heads of all channels.
func (s *staticSite) findHeads(ctx context.Context) error {
	for i := range s.c.packages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		pkg := s.c.packages[i].name
		for _, b := range s.c.blobsOf(pkg) {
			if b.schema != declcfg.SchemaChannel {
				continue
			}
			read, err := s.c.parse(&b)
			if err != nil {
				return err
			}
			if channel, ok := read.(*declcfg.Channel); ok {
				for _, name := range channel.Heads() {
					s.heads[[2]string{pkg, name}] = true
				}
			}
		}
	}
	return nil
}

// leavesOut reports whether a page is that of a bundle that is not written.
func (s *staticSite) leavesOut(page string, pairs []string) bool {
	if s.heads == nil || page != "bundle" && page != "changes" {
		return false
	}
	return !s.heads[[2]string{pairs[1], pairs[len(pairs)-1]}]
}

// jobs is how many pages are built concurrently.
func (s *staticSite) jobs() int {
	if s.o.Jobs <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return s.o.Jobs
}
