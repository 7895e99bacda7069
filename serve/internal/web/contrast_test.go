package web

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// All text is legible: the contrast is at least 4.5 to 1 in light and dark mode (WCAG 2.2, 1.4.3).
func TestContrast(t *testing.T) {
	schemes := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(style, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d colour schemes", len(schemes))
	}
	for i, scheme := range schemes {
		colour := map[string]string{}
		for _, m := range regexp.MustCompile(`--([a-z]+):#([0-9a-f]{3,6})`).FindAllStringSubmatch(scheme[1], -1) {
			colour[m[1]] = m[2]
		}
		for _, pair := range [][2]string{{"text", "ground"}, {"text", "panel"}, {"faint", "ground"}, {"faint", "panel"},
			{"link", "ground"}, {"link", "panel"}, {"alert", "ground"}, {"alert", "alertsoft"}, {"accent", "soft"},
			{"text", "soft"}, {"ground", "accent"}} {
			a, b := luminance(t, colour[pair[0]]), luminance(t, colour[pair[1]])
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
				t.Errorf("scheme %d: %s on %s has %.2f", i, pair[0], pair[1], ratio)
			}
		}
	}
}

// luminance returns the relative luminance of a colour as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
