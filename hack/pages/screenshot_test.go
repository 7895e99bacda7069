package pages

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// pictures are the screenshots of the documentation.
var pictures = []struct {
	name, path, scroll string
	screen             screen
}{
	{"page-packages", "/", "", screen{"", 1280, 860, false}},
	{"page-package", "/package?name=orchard-operator", "", screen{"", 1280, 1100, false}},
	{"page-graph", "/package?name=orchard-operator", "#graph", screen{"", 1000, 420, true}},
	{"page-changes", kinds["changes"], "#gained", screen{"", 1000, 640, false}},
	{"page-phone", "/?category=Database", "", screen{"", 360, 740, false}},
}

// loaded says whether all that can be seen of a page is there.
const loaded = `document.readyState === "complete" && [...document.images].every(i => i.complete && i.naturalWidth > 0) &&
	[...document.querySelectorAll("[data-icon]")].every(i => i.querySelector("img") ||
		i.getBoundingClientRect().top > innerHeight)`

// Screenshots are not blank. With -update they are those of the documentation.
func TestScreenshots(t *testing.T) {
	for _, p := range pictures {
		v := newTab(t, p.screen)
		v.open(t, p.path)
		v.until(t, loaded)
		if p.scroll != "" {
			v.do(t, chromedp.Evaluate(`document.querySelector("`+p.scroll+`").scrollIntoView()`, nil))
		}
		var shot []byte
		v.do(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
			shot, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
			return err
		}))
		picture, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		colours := map[any]bool{}
		for y := 0; y < picture.Bounds().Dy(); y += 3 {
			for x := 0; x < picture.Bounds().Dx(); x += 3 {
				colours[picture.At(x, y)] = true
			}
		}
		if len(colours) < 50 {
			t.Errorf("%s has %d colours", p.name, len(colours))
		}
		if *update {
			if err := os.WriteFile(filepath.Join(root, "docs/images", p.name+".png"), shrink(picture),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// shrink encodes a picture with a palette of its 256 most frequent colours, for which pages have hardly more.
func shrink(from image.Image) []byte {
	counts := map[color.RGBA]int{}
	bounds := from.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			counts[at(x, y)]++
		}
	}
	var all []color.RGBA
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range all[:min(len(all), 256)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(bounds, palette)
	index := map[color.RGBA]uint8{}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			c := at(x, y)
			i, ok := index[c]
			if !ok {
				i = uint8(palette.Index(c))
				index[c] = i
			}
			to.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, to); err != nil {
		return nil
	}
	return out.Bytes()
}
