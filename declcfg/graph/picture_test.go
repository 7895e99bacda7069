package graph

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a golden file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another drawing now: look at it, and run the test with -update if it is good", name)
	}
}

func mini(t testing.TB) *declcfg.Catalog {
	t.Helper()
	c, err := fromDir(t, "../../testdata/fbc/mini")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Drawings of known catalogs equal the reviewed golden files byte for byte.
func TestGoldenPictures(t *testing.T) {
	golden(t, "kairos.svg", draw(t, "svg", mini(t), Options{Package: "kairos-operator"}))
	golden(t, "kairos.dot", draw(t, "dot", mini(t), Options{Package: "kairos-operator"}))
	deprecated, err := fromDir(t, "../../testdata/oracle/fbc-cases/ok-deprecations")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "deprecations.svg", draw(t, "svg", deprecated, Options{}))
	golden(t, "deprecations.html", draw(t, "html", deprecated, Options{}))
	golden(t, "deprecations.mmd", draw(t, "mermaid", deprecated, Options{}))
}

// The order of blobs and of entries does not affect a drawing.
func TestDrawingIsAFunctionOfTheCatalog(t *testing.T) {
	c := mini(t)
	want := map[string]string{}
	for _, format := range []string{"svg", "html", "dot"} {
		want[format] = draw(t, format, c, Options{})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(c.Packages), func(i, j int) { c.Packages[i], c.Packages[j] = c.Packages[j], c.Packages[i] })
		random.Shuffle(len(c.Channels), func(i, j int) { c.Channels[i], c.Channels[j] = c.Channels[j], c.Channels[i] })
		random.Shuffle(len(c.Bundles), func(i, j int) { c.Bundles[i], c.Bundles[j] = c.Bundles[j], c.Bundles[i] })
		for _, ch := range c.Channels {
			random.Shuffle(len(ch.Entries),
				func(i, j int) { ch.Entries[i], ch.Entries[j] = ch.Entries[j], ch.Entries[i] })
			for _, e := range ch.Entries {
				random.Shuffle(len(e.Skips), func(i, j int) { e.Skips[i], e.Skips[j] = e.Skips[j], e.Skips[i] })
			}
		}
		for format, drawing := range want {
			// The table of the page lists skips in their original order.
			if got := draw(t, format, c, Options{}); tables.ReplaceAllString(got,
				"") != tables.ReplaceAllString(drawing, "") {
				t.Errorf("%s differs", format)
			}
		}
	}
}

var tables = regexp.MustCompile(`(?s)<table>.*?</table>`)

// The policy of a page allows its style and its script by hash and nothing else.
func TestPagePolicy(t *testing.T) {
	page := draw(t, "html", mini(t), Options{})
	for _, tag := range []string{"style", "script"} {
		parts := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(parts) != 1 {
			t.Fatalf("%d elements %s", len(parts), tag)
		}
		sum := sha256.Sum256([]byte(parts[0][1]))
		if want := tag + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(page,
			want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	for _, bad := range []string{" style=", " src=", "url(", "@import", "<link", "xlink"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
}

// No element is outside of the drawing, and the labels of lanes do not overlap.
func TestPictureHoldsEverything(t *testing.T) {
	for _, c := range []*declcfg.Catalog{mini(t), hostile(), many(40, 60), many(3, 300)} {
		for _, s := range newSheets(c, nil) {
			d := newLayout(s, margin, margin, false)
			for i, b := range d.lanes {
				if b.leftTrack(b.left) < d.left || b.rightTrack(b.right-1) > d.textAt {
					t.Errorf("%s: lane %s leaves its place", s.name, b.name)
				}
				if i > 0 && b.leftTrack(b.left) <= d.lanes[i-1].rightTrack(d.lanes[i-1].right-1) {
					t.Errorf("%s: lanes %d and %d meet", s.name, i-1, i)
				}
				if i > 0 && !d.slanted && b.x-labelWidth(b.lane)/2 < d.lanes[i-1].x+labelWidth(d.lanes[i-1].lane)/2+4 {
					t.Errorf("%s: the names of lanes %d and %d meet", s.name, i-1, i)
				}
			}
			for i, words := range d.words {
				if end := d.textAt + wordsWidth(words); end > d.width {
					t.Errorf("%s: row %d ends at %f of %f", s.name, i, end, d.width)
				}
			}
		}
	}
}

// many is a package of many channels and bundles with edges of every kind.
func many(channels, bundles int) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: "many", DefaultChannel: "channel-0"}}}
	name := func(i int) string { return fmt.Sprintf("many.v1.%d.%d", i/10, i%10) }
	for i := range bundles {
		c.Bundles = append(c.Bundles,
			declcfg.Bundle{Name: name(i), Package: "many", Image: "e.x/many:" + name(i), Properties: []declcfg.Property{
				{Type: declcfg.PropertyPackage,
					Value: json.RawMessage(fmt.Sprintf(`{"packageName":"many","version":"1.%d.%d"}`, i/10, i%10))}}})
	}
	for j := range channels {
		ch := declcfg.Channel{Name: fmt.Sprintf("channel-%d", j), Package: "many"}
		for i := range bundles {
			e := declcfg.ChannelEntry{Name: name(i)}
			if i > 0 {
				e.Replaces = name(i - 1 - i%3*min(i-1, 1)%i)
			}
			if j%2 == 0 {
				for k := max(0, i-5); k < i; k++ {
					e.Skips = append(e.Skips, name(k))
				}
			} else {
				e.SkipRange = fmt.Sprintf(">=1.0.0 <1.%d.%d", i/10, i%10)
			}
			ch.Entries = append(ch.Entries, e)
		}
		c.Channels = append(c.Channels, ch)
	}
	return c
}

// Channels of 10,000 bundles with many skips each are drawn with a bounded number of lines.
func TestLongChannel(t *testing.T) {
	if testing.Short() {
		t.Skip("draws a long channel")
	}
	c := many(2, 10000)
	for _, format := range []string{"svg", "html"} {
		if n := len(draw(t, format, c, Options{})); n > 32<<20 {
			t.Errorf("%s has %d bytes", format, n)
		}
	}
}

// Errors of a graph are visible in its drawing.
func TestPictureShowsWhatIsWrong(t *testing.T) {
	c := &declcfg.Catalog{
		Packages: []declcfg.Package{{Name: "p", DefaultChannel: "none"}},
		Channels: []declcfg.Channel{
			{Name: "two", Package: "p",
				Entries: []declcfg.ChannelEntry{{Name: "a", Replaces: "gone", SkipRange: "nonsense"},
					{Name: "b", Skips: []string{"x"}}}},
			{Name: "cycle", Package: "p",
				Entries: []declcfg.ChannelEntry{{Name: "a", Replaces: "b"}, {Name: "b", Replaces: "a"}}},
			{Name: "own", Package: "p", Entries: []declcfg.ChannelEntry{{Name: "a", Replaces: "a"}}},
			{Name: "lost", Package: "q"},
		},
		Bundles: []declcfg.Bundle{{Name: "a", Package: "p"}, {Name: "b", Package: "p"}, {Name: "alone", Package: "p"}},
	}
	_, text := elements(t, draw(t, "svg", c, Options{}), false)
	for _, want := range []string{
		"channel two has 2 heads", "channel cycle has no heads", "replaces itself (own)",
		"invalid skipRange nonsense (two)", "not in the catalog", "in no channel",
		"skips 1 that the catalog does not have", "the default channel none is not there",
		"the catalog has no olm.package of this name", "has no version",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
}

func TestSelect(t *testing.T) {
	c := mini(t)
	for _, c2 := range []struct {
		o    Options
		want string // channels, or the error
	}{
		{Options{}, "alpha alpha candidate-v2 stable stable v0.3 v0.4"},
		{Options{Package: "ecr-secret-operator"}, "v0.3 v0.4"},
		{Options{Channels: []string{"alpha"}}, "alpha alpha"},
		{Options{Package: "ecr-secret-operator", Channels: []string{"v0.3"}}, "v0.3"},
		{Options{Package: "nosuch"}, `package "nosuch" not found`},
		{Options{Package: "ecr-secret-operator", Channels: []string{"v0.3", "alpha"}}, `channel "alpha" not found`},
	} {
		got, err := c2.o.Select(c)
		if err != nil {
			if err.Error() != c2.want {
				t.Errorf("%+v: %v", c2.o, err)
			}
			continue
		}
		var names []string
		for _, ch := range got.Channels {
			names = append(names, ch.Name)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != c2.want {
			t.Errorf("%+v: %v", c2.o, names)
		}
	}
	one, err := Options{Package: "ecr-secret-operator", Channels: []string{"v0.3"}}.Select(c)
	if err != nil || len(one.Bundles) != 1 || len(one.Packages) != 1 {
		t.Errorf("%v, %v", one, err)
	}
}

func TestNaturally(t *testing.T) {
	names := []string{"stable-v1.9", "stable-v1.10", "stable-v1.100", "stable-v2", "stable-v02x"}
	got := slices.Clone(names)
	slices.Reverse(got)
	slices.SortFunc(got, naturally)
	if !slices.Equal(got, names) {
		t.Errorf("%q", got)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdefghij", 7, "abcd…ij"}, {"üüüü", 3, "ü…ü"}} {
		if got := clip(c.in, c.n); got != c.want {
			t.Errorf("clip(%q, %d) = %q", c.in, c.n, got)
		}
	}
}

// A bundle that is replaced and skipped in the drawn channel, and has an entry only in another one, is drawn as
// existing. It does not count as a bundle of the drawn channel.
func TestBundlesOfOtherChannels(t *testing.T) {
	c := &declcfg.Catalog{
		Packages: []declcfg.Package{{Name: "p", DefaultChannel: "new"}},
		Channels: []declcfg.Channel{
			{Name: "new", Package: "p",
				Entries: []declcfg.ChannelEntry{{Name: "p.v3", Replaces: "p.v2", Skips: []string{"p.v1", "p.v0"}}}},
			{Name: "old", Package: "p",
				Entries: []declcfg.ChannelEntry{{Name: "p.v2", Replaces: "p.v1"}, {Name: "p.v1"}}},
		},
	}
	for _, v := range []string{"1", "2", "3"} {
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: "p.v" + v, Package: "p", Properties: []declcfg.Property{
			{Type: declcfg.PropertyPackage, Value: []byte(`{"packageName":"p","version":"` + v + `.0.0"}`)}}})
	}
	for _, format := range []string{"svg", "html", "dot"} {
		drawing := draw(t, format, c, Options{Channels: []string{"new"}})
		for _, bad := range []string{"not in the catalog", "in no channel", "skips 2 that"} {
			if strings.Contains(drawing, bad) {
				t.Errorf("%s: %q is in the picture", format, bad)
			}
		}
	}
	drawing := draw(t, "svg", c, Options{Channels: []string{"new"}})
	for _, want := range []string{"not in this channel but in old", "1 channel, 1 bundle", "Channel new: 1 bundle, head p.v3.",
		"1 that the catalog does not have"} {
		if !strings.Contains(drawing, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	if whole := draw(t, "svg", c, Options{}); !strings.Contains(whole,
		"Channel new: 1 bundle, head p.v3. Channel old: 2 bundles") {
		t.Error("bundles that a channel only names count as its own")
	} else if n := strings.Count(whole, "not in channel new<"); n != 2 {
		t.Errorf("%d bundles are said not to be in channel new, 2 are not", n)
	}
}
