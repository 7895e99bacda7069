package pages

import (
	"fmt"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// awaited makes an evaluation wait for its promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// focused describes what has the focus and whether that can be seen.
const focused = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return "";
	const seen = s => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2;
	const box = e.getBoundingClientRect();
	const ok = (seen(getComputedStyle(e)) || seen(getComputedStyle(e, "::after"))) && box.width > 0 && box.right > 0;
	e.dataset.reached = "yes";
	return (ok ? "" : "unseen ") + e.tagName + " " + (e.id || e.textContent.trim().slice(0, 30));
})()`

// missed lists what can have the focus and was not reached.
const missed = `[...document.querySelectorAll("a[href],button,input:not([type=hidden]),select,summary,[tabindex='0']")]
	.filter(e => e.checkVisibility() && !e.dataset.reached)
	.map(e => e.tagName + " " + e.textContent.trim().slice(0, 30)).join("; ")`

// The keyboard reaches everything in the order of the page, shows where it is, and is caught nowhere.
func TestKeyboard(t *testing.T) {
	for i, pages := range map[int][]string{0: {"list", "package", "bundle", "nothing"}, 2: {"list", "package"}} {
		s := screens[i]
		for _, kind := range pages {
			t.Run(s.name+" "+kind, func(t *testing.T) {
				v := newTab(t, s)
				v.open(t, kinds[kind])
				steps := 0
				for ; steps < 400; steps++ {
					v.do(t, chromedp.KeyEvent(kb.Tab))
					at := value[string](t, v, focused)
					if at == "" {
						break
					}
					if steps == 0 && !strings.Contains(at, "Skip to the content") {
						t.Errorf("the first stop is %q", at)
					}
					if strings.HasPrefix(at, "unseen ") {
						t.Errorf("the focus cannot be seen: %s", at)
					}
				}
				if steps == 400 {
					t.Error("the keyboard does not leave the page")
				}
				if left := value[string](t, v, missed); left != "" {
					t.Errorf("the keyboard does not reach %s", left)
				}
				// The link past the header leads to the content.
				v.open(t, kinds[kind])
				v.do(t, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
				v.until(t, `document.activeElement.id === "main"`)
			})
		}
	}
}

// With script the list changes while one types and chooses, without a new page; the address can be shared.
func TestSearchWithScript(t *testing.T) {
	v := newTab(t, screens[0])
	v.open(t, "/")
	v.do(t, chromedp.Evaluate(`window.same = true`, nil), chromedp.SendKeys("#q", "RabbitmqCluster"))
	v.until(t, `document.querySelectorAll(".card").length === 1`)
	if got := value[string](t, v,
		`document.querySelector(".card h2").textContent`); got != "RabbitMQ-cluster-operator" {
		t.Errorf("the search finds %q", got)
	}
	if got := value[string](t, v, `document.querySelector("#find [role=status]").textContent`); !strings.HasPrefix(got,
		"1 package of 31") {
		t.Errorf("a screen reader says %q", got)
	}
	if got := value[string](t, v, `location.search + document.activeElement.id`); got != "?q=RabbitmqClusterq" {
		t.Errorf("address and focus: %q", got)
	}
	v.do(t, chromedp.Evaluate(`q.value = ""; q.dispatchEvent(new Event("input", {bubbles: true}))`, nil))
	v.until(t, `document.querySelectorAll(".card").length > 20`)
	v.do(t, chromedp.Click(`.pick input[value="Database"]`, chromedp.ByQuery))
	v.until(t, `document.querySelectorAll(".card").length === 3 && document.querySelector(".chip")`)
	v.do(t, chromedp.Evaluate(`const s = document.querySelector("select"); s.value = "newest";
		s.dispatchEvent(new Event("change", {bubbles: true}))`, nil))
	v.until(t,
		`location.search === "?category=Database&sort=newest" && document.querySelector("select").value === "newest"`)
	if !value[bool](t, v, `window.same && document.querySelectorAll(".pick input:checked").length === 1`) {
		t.Error("the page was loaded again")
	}
	for _, c := range v.complaints() {
		t.Error(c)
	}
}

// Without script the forms do the same.
func TestSearchWithoutScript(t *testing.T) {
	v := newTab(t, screens[0])
	v.do(t, emulation.SetScriptExecutionDisabled(true))
	v.open(t, "/")
	v.do(t, chromedp.SendKeys("#q", "RabbitmqCluster"+kb.Enter), chromedp.WaitVisible("#found", chromedp.ByQuery))
	v.until(t, `location.search.includes("q=RabbitmqCluster") && document.querySelectorAll(".card").length === 1`)
	if value[bool](t, v, `!!document.querySelector(".js")`) {
		t.Error("the script has run")
	}
	v.open(t, "/")
	v.do(t, chromedp.Click(`.pick input[value="Database"]`, chromedp.ByQuery),
		chromedp.Click(".apply button", chromedp.ByQuery))
	v.until(t, `location.search.includes("category=Database") && document.querySelectorAll(".card").length === 3`)
}

// The button beside the manifests copies them.
func TestCopy(t *testing.T) {
	v := newTab(t, screens[0])
	v.open(t, kinds["package"])
	v.do(t, cdpbrowser.GrantPermissions([]cdpbrowser.PermissionType{cdpbrowser.PermissionTypeClipboardReadWrite,
		cdpbrowser.PermissionTypeClipboardSanitizedWrite}).WithOrigin(site))
	v.do(t, chromedp.Click(".copy", chromedp.ByQuery))
	v.until(t, `document.querySelector(".copy").textContent === "Copied"`)
	var text string
	v.do(t, chromedp.Evaluate(`navigator.clipboard.readText()`, &text, awaited))
	if !strings.Contains(text, "kind: Subscription\n") || !strings.Contains(text, "  name: orchard-operator\n") {
		t.Errorf("copied: %s", text)
	}
}

// On paper everything of the list and of a package is there.
func TestPrint(t *testing.T) {
	v := newTab(t, screens[0])
	for _, kind := range []string{"list", "package"} {
		v.open(t, kinds[kind])
		v.do(t, emulation.SetEmulatedMedia().WithMedia("print"))
		if got := value[string](t, v, `getComputedStyle(document.querySelector(".top nav")).display`); got != "none" {
			t.Errorf("%s: the navigation is printed (%s)", kind, fmt.Sprint(got))
		}
	}
}
