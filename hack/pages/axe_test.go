package pages

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// kinds are a page of every kind, and of those that differ by what they show.
var kinds = map[string]string{
	"list":      "/",
	"filtered":  "/?q=operator&category=Database&category=Monitoring&sort=newest",
	"last":      "/?page=2",
	"nothing":   "/?q=nothing+has+this",
	"package":   "/package?name=orchard-operator",
	"real":      "/package?name=rabbitmq-cluster-operator",
	"old":       "/package?name=scarecrow",
	"channel":   "/channel?package=orchard-operator&name=fast",
	"bundle":    "/bundle?package=orchard-operator&name=orchard-operator.v1.2.0",
	"manifests": "/bundle?package=orchard-operator&name=orchard-operator.v1.1.0",
	"file":      "/file?package=orchard-operator&name=orchard-operator.v1.1.0&file=3",
	"fields":    "/definition?package=orchard-operator&name=orchard-operator.v1.1.0&crd=trees.orchard.example.com",
	"changes":   "/changes?package=orchard-operator&from=orchard-operator.v1.1.0&to=orchard-operator.v1.2.0",
	"unchanged": "/changes?package=orchard-operator&from=orchard-operator.v1.1.0&to=orchard-operator.v1.1.0",
	"unknown":   "/changes?package=orchard-operator&from=orchard-operator.v1.0.0&to=orchard-operator.v1.1.0",
	"images":    "/images?package=orchard-operator",
	"search":    "/images?q=rabbitmq",
	"not-there": "/missing",
}

// inTheDark are the kinds that together have all elements.
var inTheDark = []string{"filtered", "nothing", "package", "old", "bundle", "manifests", "file", "fields", "changes", "not-there"}

// likeOthers are the kinds that differ from others by what they show alone: one screen is enough for them.
var likeOthers = []string{"last", "search"}

// finding is a violation of a rule of axe-core.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// No page breaks a rule of axe-core, in any colours, on any screen; it fits a phone, loads nothing from elsewhere, and
// the browser does not complain.
func TestRules(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: npm ci puts it there", err)
	}
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			v := newTab(t, s)
			for name, path := range kinds {
				if s.dark && !slices.Contains(inTheDark, name) || s.width < 400 && slices.Contains(likeOthers, name) {
					continue
				}
				begin := time.Now()
				v.open(t, path)
				// The folded parts are looked at too.
				v.do(t, chromedp.Evaluate(`document.querySelectorAll("main details").forEach(d => d.open = true)`, nil))
				if width := value[int64](t, v, "document.documentElement.scrollWidth"); width > s.width {
					t.Errorf("%s is %d wide: %s", name, width, value[string](t, v, widest))
				}
				v.do(t, chromedp.Evaluate(string(axe), nil))
				for _, f := range violations(t, v, s.dark) {
					t.Errorf("%s: %s, %s: %s", name, f.Impact, f.ID, f.Help)
					for _, n := range f.Nodes[:min(len(f.Nodes), 3)] {
						t.Logf("   %.200s\n%s", n.HTML, n.FailureSummary)
					}
				}
				t.Logf("%s: %v", name, time.Since(begin).Round(time.Millisecond))
			}
			for _, c := range v.complaints() {
				t.Error(c)
			}
		})
	}
}

// widest names the elements that stand out of a page.
const widest = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
	!e.closest(".scroll,pre,.unseen")).map(e => e.tagName + "." + e.className).slice(0, 8).join(" ")`

// violations runs axe-core. In the dark only contrasts can differ: the elements are those of the light page.
func violations(t *testing.T, v *tab, dark bool) []finding {
	t.Helper()
	options := `{resultTypes: ["violations"], preload: false}`
	if dark {
		options = `{resultTypes: ["violations"], preload: false, runOnly: ["color-contrast"]}`
	}
	var out []finding
	v.do(t, chromedp.Evaluate(`axe.run(document, `+options+`).then(r => r.violations)`, &out, chromedp.EvalAsValue,
		awaited))
	return out
}

// The first page takes less than 50 KB with the icons that can be seen.
func TestFirstPage(t *testing.T) {
	v := newTab(t, screens[0])
	v.do(t, network.SetCacheDisabled(true))
	v.open(t, "/")
	v.until(t, loaded)
	v.mu.Lock()
	defer v.mu.Unlock()
	page, icons := 0.0, 0.0
	var list []string
	for url, size := range v.sizes {
		list = append(list, fmt.Sprintf("%6.0f %s", size, strings.TrimPrefix(url, site)))
		if strings.Contains(url, "/icon?") {
			icons += size
		} else {
			page += size
		}
	}
	t.Logf("%.0f bytes, and %.0f of icons\n%s", page, icons, strings.Join(list, "\n"))
	if page > 20_000 || page+icons > 50_000 || icons == 0 {
		t.Errorf("the page takes %.0f bytes, and its icons %.0f", page, icons)
	}
}
