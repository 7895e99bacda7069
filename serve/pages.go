package serve

import (
	"context"
	"sync"

	"google.golang.org/grpc/mem"
)

const (
	// pageSize is how many bytes a page takes while it is sent, about: its records, and answerCost for each of them, which is
	// what the transport keeps of a message beside its bytes.
	pageSize   = 10 << 10
	answerCost = 256
	// leastAhead is how many pages of a call the transport may hold where many calls are open. Its own limit of 64 KiB for
	// each would let clients that do not read hold messages whose descriptions take more memory than the shared pages.
	leastAhead = 2
	// mostAhead is how many it may hold where few are open: as much as the transport takes, because it is slower to wait
	// for each page to go.
	mostAhead = 8
	// allAhead is how many pages all calls may have with the transport before a new one gets less than the most.
	allAhead = 512
)

// pages are the answers of ListBundles in pieces, which all calls share: a thousand clients that read as slowly as they
// like hold the catalog's list once, and not a copy of their part of it each. It is safe for concurrent use.
type pages struct {
	limit int // of the bytes of all pages in memory

	mu    sync.Mutex
	used  int
	calls int // that are open
	list  []page
	// idle are those in memory that no call uses. Any of them makes room: a list is asked for from its beginning to its end,
	// so that of those used least lately the next is always the one that is wanted next.
	idle map[*page]struct{}
}

// page is some answers that follow one another.
type page struct {
	channel, entry int // where it begins: positions in catalog.channels and in the channel's entries
	answers        int
	size           int // of the answers' records in bytes
	// loose is an answer with manifests, which is too large to be kept for others.
	loose bool

	load sync.Mutex // held while it is read

	// The rest is under the lock of pages.
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
			case last < 0 || p.list[last].loose || p.list[last].size+size+(p.list[last].answers+1)*answerCost > pageSize:
				p.list = append(p.list, page{channel: i, entry: j, answers: 1, size: size})
			default:
				p.list[last].answers++
				p.list[last].size += size
			}
		}
	}
	return p
}

// entries calls fn for the entries of a page until it is false.
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

// begin counts a call and returns how many pages it may have with the transport. The caller ends it.
func (p *pages) begin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return min(max(allAhead/p.calls, leastAhead), mostAhead)
}

func (p *pages) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
}

// get returns a page's answers as one buffer and where each of them ends. Each reference to the buffer keeps the page
// in memory; the caller frees its own, and done is called after the last. It returns nil where there is no room for the
// page: so many others are being sent.
func (p *pages) get(ctx context.Context, c *catalog, g *page, done func()) (mem.Buffer, []int, error) {
	if buf, ends := p.use(g, done); buf != nil {
		return buf, ends, nil
	}
	g.load.Lock()
	defer g.load.Unlock()
	if buf, ends := p.use(g, done); buf != nil {
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
	if !p.keep(g, data, ends) {
		return nil, nil, nil
	}
	buf, ends := p.use(g, done)
	return buf, ends, nil
}

const (
	// edgesSize is a guess at what the channel adds to an answer.
	edgesSize = 128
	// leastBuffer is a capacity beyond the transport's threshold, below which it does not give buffers back.
	leastBuffer = 2 << 10
)

// use counts a user of a page that is in memory.
func (p *pages) use(g *page, done func()) (mem.Buffer, []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.data == nil {
		return nil, nil
	}
	delete(p.idle, g)
	g.users++
	return mem.NewBuffer(&g.data, pageUse{p, g, done}), g.ends
}

// keep puts a page into memory, in place of others that no call uses. It has no user yet.
func (p *pages) keep(g *page, data []byte, ends []int) bool {
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

// pageUse is the pool to which a user's buffer goes back: the page has one user less.
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
