package serve

import (
	"context"
	"sync"

	"google.golang.org/grpc/mem"
)

// pageSize is how many bytes of records stand in a page, about: what one client is sent ahead of its reading.
const pageSize = 32 << 10

// pages are the answers of ListBundles in pieces, which all calls share: a thousand clients that read as slowly as they
// like hold the catalog's list once, and not a copy of their part of it each. It is safe for concurrent use.
type pages struct {
	limit int // of the bytes of all pages in memory

	mu    sync.Mutex
	used  int
	list  []page
	clock uint64
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
	data  []byte // nil while it is not in memory; with room at the end, so that the transport counts its references
	ends  []int  // of the answers in data
	users int
	last  uint64 // use, as the clock of pages says it
}

// newPages divides the answers of ListBundles. It reads nothing.
func newPages(c *catalog, limit int) *pages {
	p := &pages{limit: limit}
	for i, ref := range c.channels {
		for j := range ref.channel.entries {
			b := &ref.pkg.bundles[ref.channel.entries[j].bundle]
			size := int(b.light.length)
			last := len(p.list) - 1
			switch {
			case !b.hasImage:
				p.list = append(p.list, page{channel: i, entry: j, answers: 1, loose: true})
			case last < 0 || p.list[last].loose || p.list[last].size+size > pageSize:
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

// get returns a page's answers as one buffer and where each of them ends. Each reference to the buffer keeps the page
// in memory; the caller frees its own. It returns nil where there is no room for the page: so many others are being sent.
func (p *pages) get(ctx context.Context, c *catalog, g *page) (mem.Buffer, []int, error) {
	if buf, ends := p.use(g); buf != nil {
		return buf, ends, nil
	}
	g.load.Lock()
	defer g.load.Unlock()
	if buf, ends := p.use(g); buf != nil {
		return buf, ends, nil
	}
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	data := make([]byte, 0, g.size+g.answers*edgesSize+bufferRoom)
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
	if cap(data)-len(data) < bufferRoom {
		data = append(make([]byte, 0, len(data)+bufferRoom), data...)
	}
	if !p.keep(g, data, ends) {
		return nil, nil, nil
	}
	buf, ends := p.use(g)
	return buf, ends, nil
}

const (
	// edgesSize is a guess at what the channel adds to an answer.
	edgesSize = 128
	// bufferRoom is capacity beyond the transport's threshold, below which it does not give buffers back.
	bufferRoom = 2 << 10
)

// use counts a user of a page that is in memory.
func (p *pages) use(g *page) (mem.Buffer, []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.data == nil {
		return nil, nil
	}
	p.clock++
	g.users++
	g.last = p.clock
	return mem.NewBuffer(&g.data, pageUse{p, g}), g.ends
}

// keep puts a page into memory, in place of others that nobody uses and that were used least lately.
func (p *pages) keep(g *page, data []byte, ends []int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.used+cap(data) > p.limit {
		var oldest *page
		for i := range p.list {
			if o := &p.list[i]; o.data != nil && o.users == 0 && (oldest == nil || o.last < oldest.last) {
				oldest = o
			}
		}
		if oldest == nil {
			return false
		}
		p.used -= cap(oldest.data)
		oldest.data, oldest.ends = nil, nil
	}
	p.used += cap(data)
	p.clock++
	g.data, g.ends, g.last = data, ends, p.clock
	return true
}

// pageUse is the pool to which a user's buffer goes back: the page has one user less.
type pageUse struct {
	pages *pages
	page  *page
}

func (u pageUse) Get(n int) *[]byte { b := make([]byte, n); return &b }

func (u pageUse) Put(*[]byte) {
	u.pages.mu.Lock()
	u.page.users--
	u.pages.mu.Unlock()
}
