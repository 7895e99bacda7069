package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// shownPackages are the packages of a list in their order, and the counts of the filters.
const (
	shownPackages = `[...document.querySelectorAll(".card h2 a")].map(a => a.textContent)`
	shownCounts   = `[...document.querySelectorAll(".pick input")].map(i => i.name + "=" + i.value + " " +
		i.parentNode.lastChild.textContent + " " + i.checked)`
	shownTexts = `[...document.querySelectorAll("fieldset summary, #found, .chips li, .pager > *, .empty h2, .sort option:not([hidden])")]
		.map(e => e.textContent.trim())`
)

// A static site works from disk: it has its styles, script and icons, its pages lead to each other, and its list finds
// what that of the server finds.
func TestStaticSite(t *testing.T) {
	work := t.TempDir()
	program, dir := filepath.Join(work, "bindery"), filepath.Join(work, "site")
	if err := compile(program); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "catalog", "site", catalog, "--to", dir, "--title",
		"Community operators").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, s := range []screen{screens[0], screens[3]} {
		t.Run(s.name, func(t *testing.T) { useStaticSite(t, s, "file://"+dir+"/") })
	}
	t.Run("search", func(t *testing.T) { compareLists(t, "file://"+dir+"/") })
}

func useStaticSite(t *testing.T, s screen, static string) {
	v := newTab(t, s)
	v.from = static
	v.do(t, chromedp.Navigate(static+"index.html"))
	v.until(t, `[...document.querySelectorAll(".card .icon img")].some(i => i.complete && i.naturalWidth > 0)`)
	if value[bool](t, v, `getComputedStyle(document.querySelector(".card")).borderRadius === "0px"`) {
		t.Error("the page has no style")
	}
	if found := inspect(t, v, s.dark); len(found) > 0 {
		t.Errorf("the list: %v", found)
	}
	v.do(t, chromedp.Evaluate(`document.querySelector(".pager a[rel=next]").click()`, nil))
	v.until(t, `location.pathname.endsWith("/page-2.html") && document.querySelector(".card") !== null`)
	for _, step := range []string{".card h2 a", "td a[href*='bundle/']", ".facts a[href*='package/']",
		"a[href*='changes/']", ".by a[href*='bundle/']", ".facts a[href*='package/']",
		"a[href*='channel/']", "nav a[href$='images.html']"} {
		before := value[string](t, v, `location.href`)
		v.do(t, chromedp.Evaluate(`document.querySelector("`+step+`").click()`, nil))
		v.until(t, `location.href !== "`+before+`" && document.readyState === "complete" &&
			document.querySelector("h1") !== null`)
		if found := inspect(t, v, s.dark); len(found) > 0 {
			t.Errorf("%s: %v", step, found)
		}
		if value[bool](t, v, `document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s: the page is too wide", step)
		}
	}
	for _, said := range v.complaints() {
		t.Error(said)
	}
}

// inspect loads axe-core into the page of a tab and runs it.
func inspect(t *testing.T, v *tab, dark bool) []finding {
	t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: npm ci puts it there", err)
	}
	v.do(t, chromedp.Evaluate(string(axe), nil))
	return violations(t, v, dark)
}

// compareLists asks the lists of the server and of the static site the same, and compares what they show.
func compareLists(t *testing.T, static string) {
	served, written := newTab(t, screens[0]), newTab(t, screens[0])
	written.from = static
	for _, query := range []string{"q=operator", "q=kafka", "q=the+a", "q=operator&sort=name", "sort=provider",
		"sort=newest", "category=database", "category=Security&level=Deep+Insights", "q=operator&page=2", "page=2", "q=nothingatall",
		"mode=OwnNamespace&mode=SingleNamespace", "provider=red+hat", "feature=FIPS&q=a"} {
		served.open(t, "/?"+query)
		written.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(static+"index.html#"+query))
		written.until(t, `document.getElementById("found").hasAttribute("role") && window.packagesOfSite !== undefined &&
			document.querySelector(".pager [rel]") === null`)
		for _, what := range []string{shownPackages, shownCounts, shownTexts} {
			want, got := value[[]string](t, served, what), value[[]string](t, written, what)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the static site shows\n%q\nthe server\n%q", query, got, want)
			}
		}
	}
	// By hand: a word, a filter, the way back.
	written.do(t, chromedp.Navigate("about:blank"), chromedp.Navigate(static+"index.html"),
		chromedp.SendKeys("#q", "operator a"))
	written.until(t, `document.getElementById("found").textContent.includes(" for “operator a”")`)
	written.do(t, chromedp.Evaluate(`document.querySelector(".pick input[name=category]").click()`, nil))
	written.until(t, `document.querySelectorAll(".chips li").length === 2`)
	if found := inspect(t, written, false); len(found) > 0 {
		t.Errorf("the list after a search: %v", found)
	}
	written.do(t, chromedp.Evaluate(`document.querySelector(".chip").click()`, nil))
	written.until(t, `document.querySelector(".chips") === null && !document.querySelector(".pick input").checked`)
	written.do(t, chromedp.Evaluate(`document.querySelector(".card h2 a").click()`, nil))
	written.until(t, `location.pathname.includes("/package/") && document.querySelector("aside .facts") !== null`)
	written.do(t, chromedp.Evaluate(`document.querySelector(".by a").click()`, nil))
	written.until(t, `location.hash.startsWith("#provider=") && document.querySelectorAll(".chips li").length === 2`)
	for _, said := range written.complaints() {
		if !strings.Contains(said, "about:blank") {
			t.Error(said)
		}
	}
}
