package serve

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/declcfg"
)

// listCatalog has bundles with images, which are in pages, and between them some whose manifests are sent.
func listCatalog(t *testing.T) *declcfg.Catalog {
	c := largeCatalog(t, 300, 500)
	for i := range c.Bundles {
		if i%100 != 50 {
			c.Bundles[i].Image = fmt.Sprintf("example.test/big:v0.0.%d", i)
		}
	}
	return c
}

// listed makes the call without a network. send receives every answer.
func listed(ctx context.Context, c *catalog, send func(answer) error) error {
	r := &registry{reader: reader{budget: &budget{limit: 1 << 20, wait: 1}}}
	return r.listBundles(ctx, c, nil, send)
}

// The list is the same however much of it fits into memory, and no page stays in use.
func TestListIsTheSameWithAndWithoutRoomForPages(t *testing.T) {
	catalog := listCatalog(t)
	var want [][]byte
	for _, limit := range []int{0, 10 << 10, 1 << 20} {
		c := newCatalog(catalogStore(t, catalog), limit)
		t.Cleanup(c.retire)
		if len(c.pages.list) < 8 {
			t.Fatalf("only %d pages", len(c.pages.list))
		}
		for range 2 {
			var got [][]byte
			if err := listed(t.Context(), c, func(a answer) error {
				got = append(got, a.data.Materialize())
				a.data.Free()
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if len(got) != 300 || !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
				t.Errorf("limit %d: %d answers, which differ from those that are read one by one", limit, len(got))
			}
		}
		if c.pages.used > limit || limit > 0 && c.pages.used == 0 {
			t.Errorf("limit %d: %d bytes are kept", limit, c.pages.used)
		}
		for i := range c.pages.list {
			if c.pages.list[i].users != 0 {
				t.Errorf("limit %d: page %d is still in use", limit, i)
			}
		}
		if c.pages.calls != 0 {
			t.Errorf("limit %d: %d calls are open", limit, c.pages.calls)
		}
	}
}

// While the transport returns nothing, a call stops at its share, and ends when it is cancelled.
func TestListWaitsForTheTransport(t *testing.T) {
	catalog := largeCatalog(t, 600, 500)
	for i := range catalog.Bundles {
		catalog.Bundles[i].Image = "example.test/big:v1"
	}
	for _, test := range []struct{ others, ahead int }{{0, mostAhead}, {allAhead, leastAhead}} {
		c := newCatalog(catalogStore(t, catalog), 1<<20)
		t.Cleanup(c.retire)
		for range test.others {
			c.pages.beginCall()
		}
		want := 0
		for i := range test.ahead {
			want += c.pages.list[i].answers
		}
		ctx, cancel := context.WithCancel(t.Context())
		held := 0
		err := listed(ctx, c, func(answer) error {
			if held++; held == want {
				cancel()
			}
			return nil
		})
		cancel()
		if status.Code(err) != codes.Canceled || held != want {
			t.Errorf("%d other calls: %d answers were sent, want %d, %v", test.others, held, want, err)
		}
	}
}

// Pages in use are not evicted for others: those are sent without being kept.
func TestPagesInUseStay(t *testing.T) {
	c := newCatalog(catalogStore(t, listCatalog(t)), 20<<10)
	t.Cleanup(c.retire)
	first := &c.pages.list[0]
	buf, ends, err := c.pages.load(t.Context(), c, first, func() {})
	if err != nil || buf == nil {
		t.Fatal(buf, err)
	}
	want := bytes.Clone(buf.ReadOnlyData())
	n := 0
	if err := listed(t.Context(), c, func(a answer) error { n++; a.data.Free(); return nil }); err != nil || n != 300 {
		t.Errorf("%d answers, %v", n, err)
	}
	if !bytes.Equal(buf.ReadOnlyData(), want) || ends[len(ends)-1] != len(want) {
		t.Error("a page in use has changed")
	}
	freed := false
	again, _, err := c.pages.load(t.Context(), c, first, func() { freed = true })
	if err != nil || again == nil || &again.ReadOnlyData()[0] != &buf.ReadOnlyData()[0] {
		t.Error("two users of a page do not share it")
	}
	part := again.Slice(0, ends[0])
	again.Free()
	if freed {
		t.Error("a page was given back while a part of it was held")
	}
	part.Free()
	if !freed || first.users != 1 {
		t.Errorf("given back: %v, users: %d", freed, first.users)
	}
	buf.Free()
}
