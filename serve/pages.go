package serve

import (
	"context"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// pageSize is the approximate memory of a page while it is sent: its records, and answerCost for each of them,
	// which the transport needs per message besides its bytes.
	pageSize   = 10 << 10
	answerCost = 256
	// leastAhead is how many pages of a call the transport may hold if many calls are open. With its own limit of 64
	// KiB per call, clients that do not read would use more memory for message descriptors than the shared pages take.
	leastAhead = 2
	// mostAhead is how many pages it may hold if few calls are open: as much as the transport accepts, because waiting
	// for each page is slower.
	mostAhead = 8
	// allAhead is how many pages all calls may have in the transport before a new call gets fewer than the most.
	allAhead = 512
)

// pages are the answers of ListBundles in pieces that all calls share: a thousand slow clients hold the catalog's list
// once, and not a copy of parts of it each. It is safe for concurrent use.
type pages struct {
	limit int // of the bytes of all pages in memory

	mu    sync.Mutex
	used  int
	calls int // open calls
	list  []page
	// idle are the pages in memory that no call uses. Any of them may be evicted: lists are read from beginning to end,
	// so the least recently used page would always be the one needed next.
	idle map[*page]struct{}
}

// page is a sequence of answers.
type page struct {
	channel, entry int // its start: positions in catalog.channels and in the channel's entries
	answers        int
	size           int // of the answers' records in bytes
	// loose is a page of one answer with manifests, which is too large to be shared.
	loose bool

	load sync.Mutex // held while it is read

	// The following fields are guarded by the lock of pages.
	data  []byte // nil while it is not in memory; its capacity is one of which the transport counts references
	ends  []int  // of the answers in data
	users int
}

// newPages divides the answers of ListBundles. It reads nothing.
func newPages(c *catalog, limit int) *pages {
	p := &pages{limit: limit, idle: map[*page]struct{}{}}
	for i, ref := range c.channels {
		for j := range ref.channel.entries {
			b := &ref.pkg.bundles[ref.channel.entries[j].bundle]
			size := int(b.light.length)
			last := len(p.list) - 1
			switch {
			case !b.hasImage:
				p.list = append(p.list, page{channel: i, entry: j, answers: 1, loose: true})
			case last < 0 || p.list[last].loose ||
				p.list[last].size+size+(p.list[last].answers+1)*answerCost > pageSize:
				p.list = append(p.list, page{channel: i, entry: j, answers: 1, size: size})
			default:
				p.list[last].answers++
				p.list[last].size += size
			}
		}
	}
	return p
}

// entries calls fn for the entries of a page until it returns false.
func (c *catalog) entries(g *page, fn func(channelRef, *indexEntry) bool) {
	for n, i, j := 0, g.channel, g.entry; n < g.answers; {
		ref := c.channels[i]
		if j == len(ref.channel.entries) {
			i, j = i+1, 0
			continue
		}
		if !fn(ref, &ref.channel.entries[j]) {
			return
		}
		n, j = n+1, j+1
	}
}

// beginCall counts a call and returns how many pages it may have in the transport. The caller must end it.
func (p *pages) beginCall() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return min(max(allAhead/p.calls, leastAhead), mostAhead)
}

func (p *pages) endCall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
}

// load returns a page's answers as one buffer, and the end of each of them. Each reference to the buffer keeps the page
// in memory; the caller must free its own, and done is called after the last. It returns nil if there is no memory for
// the page because too many others are being sent.
func (p *pages) load(ctx context.Context, c *catalog, g *page, done func()) (mem.Buffer, []int, error) {
	if buf, ends := p.addUser(g, done); buf != nil {
		return buf, ends, nil
	}
	g.load.Lock()
	defer g.load.Unlock()
	if buf, ends := p.addUser(g, done); buf != nil {
		return buf, ends, nil
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	data := make([]byte, 0, g.size+g.answers*edgesSize+leastBuffer)
	ends := make([]int, 0, g.answers)
	var err error
	c.entries(g, func(ref channelRef, e *indexEntry) bool {
		rec := ref.pkg.bundles[e.bundle].light
		start := len(data)
		data = append(data, make([]byte, rec.length)...)
		if err = ref.pkg.read(data[start:], rec); err != nil {
			return false
		}
		data = appendEntry(data, ref.channel.name, e, true)
		ends = append(ends, len(data))
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	if cap(data) > len(data)+len(data)/8 {
		data = append(make([]byte, 0, max(len(data), leastBuffer)), data...)
	}
	if !p.storePage(g, data, ends) {
		return nil, nil, nil
	}
	buf, ends := p.addUser(g, done)
	return buf, ends, nil
}

const (
	// edgesSize estimates what the channel adds to an answer.
	edgesSize = 128
	// leastBuffer is above the transport's threshold, below which it does not return buffers.
	leastBuffer = 2 << 10
)

// addUser adds a user of a page in memory.
func (p *pages) addUser(g *page, done func()) (mem.Buffer, []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.data == nil {
		return nil, nil
	}
	delete(p.idle, g)
	g.users++
	return mem.NewBuffer(&g.data, pageUse{p, g, done}), g.ends
}

// storePage puts a page into memory and evicts others that no call uses. The page has no user yet.
func (p *pages) storePage(g *page, data []byte, ends []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.used+cap(data) > p.limit {
		if len(p.idle) == 0 {
			return false
		}
		for o := range p.idle {
			delete(p.idle, o)
			p.used -= cap(o.data)
			o.data, o.ends = nil, nil
			break
		}
	}
	p.used += cap(data)
	p.idle[g] = struct{}{}
	g.data, g.ends = data, ends
	return true
}

// pageUse is the pool that a user's buffer is returned to: the page then has one user less.
type pageUse struct {
	pages *pages
	page  *page
	done  func()
}

func (u pageUse) Get(n int) *[]byte { b := make([]byte, n); return &b }

func (u pageUse) Put(*[]byte) {
	u.pages.mu.Lock()
	if u.page.users--; u.page.users == 0 {
		u.pages.idle[u.page] = struct{}{}
	}
	u.pages.mu.Unlock()
	u.done()
}
