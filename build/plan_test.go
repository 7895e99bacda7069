package build

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

// A plan has the same layers, packages and totals as the built image.
func TestPlanIsWhatIsBuilt(t *testing.T) {
	small := catalog(t, CatalogInput{FS: sampleFS()}, Options{})
	base := &Base{Open: func(ctx context.Context, choose images.Chooser) (*images.Image, error) {
		at, err := images.At(ctx, small.Store(), small.Top())
		if err != nil {
			return nil, err
		}
		return at.Choose(ctx, choose)
	}}
	amd, arm := server(t, "amd64", elf.EM_X86_64), server(t, "arm64", elf.EM_AARCH64)
	cases := map[string]Options{
		"no server":          {},
		"few layers":         {MaxLayers: 7},
		"one platform":       {Servers: []Server{amd}, MaxLayers: 12},
		"two platforms":      {Servers: []Server{amd, arm}},
		"upon another index": {Base: base, Platform: v1.Platform{OS: "linux", Architecture: "amd64"}, MaxLayers: 20},
		"previous":           {MaxLayers: 5, Previous: &Previous{Groups: [][]string{{"op-01"}, {"op-02", "op-03"}}}},
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			o.Dir = t.TempDir()
			plan, err := CatalogInput{FS: crowd()}.Plan(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(o.Dir); err != nil || len(left) != 0 {
				t.Errorf("a plan leaves %v, %v", left, err)
			}
			o.Dir = t.TempDir()
			img, err := Catalog(t.Context(), CatalogInput{FS: crowd()}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			text := func(l Layer) string { return fmt.Sprintf("%s %q", l.Kind, l.Packages) }
			var planned, built []string
			for _, l := range plan.Layers {
				planned = append(planned, fmt.Sprintf("%s %q", l.Kind, l.Packages))
				if (l.Kind == LayerBase) != (l.Size > 0) || l.Kind == LayerPackages && l.Uncompressed == 0 {
					t.Errorf("%+v", l)
				}
			}
			// In a plan the servers are listed together; in an image each is at its platform's position.
			for _, kind := range []LayerKind{LayerBase, LayerServer, LayerReset, LayerPackages} {
				for _, l := range img.Layers {
					if l.Kind == kind {
						built = append(built, text(l))
					}
				}
			}
			if fmt.Sprint(planned) != fmt.Sprint(built) {
				t.Errorf("planned %s\nbuilt   %s", planned, built)
			}
			if most := o.MaxLayers; most > 0 && plan.Totals.Layers > most || plan.Totals.Packages != 30 {
				t.Errorf("%+v", plan.Totals)
			}
		})
	}
}

func TestPlanRefusesWhatABuildRefuses(t *testing.T) {
	for name, o := range map[string]Options{"no directory": {},
		"no layer left": {Dir: t.TempDir(), MaxLayers: 1, Servers: []Server{server(t, "amd64", elf.EM_X86_64)}}} {
		if _, err := (CatalogInput{FS: crowd()}).Plan(t.Context(), o); err == nil {
			t.Errorf("%s: planned", name)
		}
	}
}

// A base with a few layers more or less does not reshuffle the packages.
func TestLayersBelowDoNotMatter(t *testing.T) {
	for _, most := range []int{100, 120} {
		for below := range reservedLayers + 1 {
			if got := contentBudget(most, below); got != most-reservedLayers {
				t.Errorf("%d layers, %d of them below: %d for packages", most, below, got)
			}
		}
	}
	for _, c := range [][3]int{{100, 30, 70}, {100, 100, 0}, {10, 1, 9}, {9, 1, 8}, {5, 0, 5}, {1, 0, 1}} {
		if got := contentBudget(c[0], c[1]); got != c[2] {
			t.Errorf("%d layers, %d of them below: %d for packages", c[0], c[1], got)
		}
	}
}
