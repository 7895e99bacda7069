package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
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

// missed lists what can have the focus and was not reached. The numbers of lines are left out on purpose.
const missed = `[...document.querySelectorAll("a[href],button,input:not([type=hidden]),select,summary,[tabindex='0']")]
	.filter(e => e.checkVisibility() && e.tabIndex >= 0 && !e.dataset.reached)
	.map(e => e.tagName + " " + e.textContent.trim().slice(0, 30)).join("; ")`

// The keyboard reaches everything in the order of the page, shows where it is, and is caught nowhere.
func TestKeyboard(t *testing.T) {
	for i, pages := range map[int][]string{0: {"list", "package", "bundle", "manifests", "file", "fields", "changes", "nothing"},
		2: {"list", "package"}} {
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
	const button = "#install ~ details .copy"
	v.do(t, chromedp.Click(button, chromedp.ByQuery))
	v.until(t, `document.querySelector("`+button+`").textContent === "Copied"`)
	var text string
	v.do(t, chromedp.Evaluate(`navigator.clipboard.readText()`, &text, awaited))
	if !strings.Contains(text, "kind: Subscription\n") || !strings.Contains(text, "  name: orchard-operator\n") {
		t.Errorf("copied: %s", text)
	}
}

// A manifest is copied without the numbers of its lines.
func TestCopyFile(t *testing.T) {
	v := newTab(t, screens[0])
	v.open(t, kinds["file"])
	v.do(t, chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector(".snippet pre"))`, nil))
	want := value[string](t, v, `getSelection().toString()`)
	v.do(t, chromedp.Evaluate(`getSelection().selectAllChildren(document.querySelector(".snippet"))`, nil))
	got := value[string](t, v, `getSelection().toString()`)
	if !strings.HasPrefix(want, "apiVersion: operators.coreos.com/v1alpha1\n") || !strings.HasPrefix(got, want) ||
		strings.ContainsAny(strings.TrimPrefix(got, want), "0123456789") {
		t.Errorf("copied: %q", got)
	}
}

// An address leads to a field in folded ones, and all can be unfolded and folded.
func TestFields(t *testing.T) {
	v := newTab(t, screens[0])
	const open = `document.querySelectorAll(".fields details[open]").length`
	v.open(t, kinds["fields"]+"#tree.v1.spec.branches.apples.colour")
	v.until(t, `document.getElementById("tree.v1.spec.branches.apples.colour").checkVisibility() && `+open+` === 3`)
	v.do(t, chromedp.Click(".fields button", chromedp.ByQuery))
	v.until(t, open+` === document.querySelectorAll(".fields details").length`)
	v.do(t, chromedp.Click(".fields button:nth-of-type(2)", chromedp.ByQuery))
	v.until(t, open+` === 0`)
	v.do(t, chromedp.Evaluate(`location.hash = "tree.v1.spec.branches"`, nil))
	v.until(t, open+` === 2`)
	for _, c := range v.complaints() {
		t.Error(c)
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

// A search without a new page moves the values with packages up as the server does. What has the focus keeps it, and
// what is open stays open.
func TestSearchMovesValues(t *testing.T) {
	v := newTab(t, screens[0])
	v.open(t, "/")
	const values = `[...document.querySelector("fieldset").querySelectorAll(".pick")].filter(p => p.checkVisibility())
		.map(p => p.innerText.replace(/\s+/g, " ").trim()).join("; ")`
	v.do(t, chromedp.Evaluate(`window.same = true; document.querySelectorAll("fieldset>details")[1].open = true`, nil),
		chromedp.SendKeys("#q", "rabbit"))
	v.until(t, `document.querySelectorAll(".card").length === 2`)
	typed := value[string](t, v, values)
	if typed != "Streaming & Messaging 2" {
		t.Errorf("categories: %q", typed)
	}
	if got := value[string](t, v,
		`[...document.querySelectorAll("fieldset>details")].map(d => +d.open).join("")`); got != "0100" {
		t.Errorf("open are %q", got)
	}
	if got := value[string](t, v, `document.getElementById("found").textContent`); got !=
		"2 packages of 31 for “rabbit” in\u00a0Streaming & Messaging (2)" {
		t.Errorf("it says %q", got)
	}
	// A box deep in the list is checked with the keyboard: it stays where it is, and has the focus.
	v.do(t, chromedp.Evaluate(`const box = document.querySelector(".pick input[name=mode]"); box.focus();
		window.place = box.getBoundingClientRect().top`, nil), chromedp.KeyEvent(" "))
	v.until(t, `document.querySelectorAll(".chip").length === 1`)
	const place = `(e => [e.name, e.value, e.checked, Math.round(e.getBoundingClientRect().top - window.place)].join(" "))
		(document.activeElement)`
	if got := value[string](t, v, place); got != "mode AllNamespaces true 0" {
		t.Errorf("the focus is on %q", got)
	}
	if !value[bool](t, v, `window.same && location.search === "?q=rabbit&mode=AllNamespaces"`) {
		t.Error("the page was loaded again")
	}
	v.open(t, "/?q=rabbit")
	if got := value[string](t, v, values); got != typed {
		t.Errorf("the server shows %q, the script %q", got, typed)
	}
	for _, c := range v.complaints() {
		t.Error(c)
	}
}

// Every reference of an image has a button, which the keyboard reaches and a screen reader can name.
func TestCopyImages(t *testing.T) {
	v := newTab(t, screens[2])
	v.open(t, kinds["bundle"])
	v.do(t, cdpbrowser.GrantPermissions([]cdpbrowser.PermissionType{cdpbrowser.PermissionTypeClipboardReadWrite,
		cdpbrowser.PermissionTypeClipboardSanitizedWrite}).WithOrigin(site))
	if got := value[string](t, v, `[".facts .copy", "td .copy", "td.image code,code.image"].map(s =>
		document.querySelectorAll(s).length).join()`); got != "2,2,4" {
		t.Errorf("buttons: %s", got)
	}
	const covering = `[...document.querySelectorAll(".small")].filter(b => [...b.previousElementSibling.getClientRects()]
		.some(r => { const q = b.getBoundingClientRect();
			return q.width < 24 || q.height < 24 || q.right > innerWidth ||
				r.left < q.right - 1 && r.right > q.left + 1 && r.top + 5 < q.bottom - 5 && r.bottom - 5 > q.top + 5; })).length`
	if n := value[int](t, v, covering); n != 0 {
		t.Errorf("%d buttons are small or cover text", n)
	}
	v.do(t, chromedp.Evaluate(`document.querySelector("td .copy").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	v.until(t, `document.querySelector("body>[role=status]").textContent === "Copied"`)
	var text string
	v.do(t, chromedp.Evaluate(`navigator.clipboard.readText()`, &text, awaited))
	if label := value[string](t, v, `document.activeElement.ariaLabel`); label != "Copy "+text || text !=
		"quay.io/example/orchard-operator:v1.2.0" {
		t.Errorf("%q copied %q", label, text)
	}
	v.until(t, `document.querySelector("body>[role=status]").textContent === "" && !document.querySelector(".done")`)
}

// On a phone tables are cards: nothing of them is beside the screen, and a screen reader still has tables.
func TestCardsOnPhone(t *testing.T) {
	for _, path := range []string{kinds["bundle"], kinds["package"], kinds["channel"]} {
		v := newTab(t, screen{"phone", 390, 844, false})
		v.open(t, path)
		const wide = `[...document.querySelectorAll("section>.scroll:has(table)")].filter(s =>
			s.scrollWidth > s.clientWidth || s.querySelector("table").getBoundingClientRect().right > innerWidth)
			.map(s => s.getAttribute("aria-labelledby")).join()`
		if got := value[string](t, v, wide); got != "" {
			t.Errorf("%s: wide are %s", path, got)
		}
		cells := value[int](t, v, `[...document.querySelectorAll("section>.scroll td")]
			.filter(c => c.checkVisibility()).length`)
		var tree struct {
			Nodes []struct {
				Ignored bool `json:"ignored"`
				Role    struct {
					Value string `json:"value"`
				} `json:"role"`
			} `json:"nodes"`
		}
		v.do(t, chromedp.ActionFunc(func(ctx context.Context) error {
			return cdp.Execute(ctx, accessibility.CommandGetFullAXTree, nil, &tree)
		}))
		nodes := map[string]int{}
		for _, n := range tree.Nodes {
			if !n.Ignored {
				nodes[n.Role.Value]++
			}
		}
		if nodes["table"] == 0 || nodes["cell"] != cells || nodes["columnheader"] == 0 || nodes["rowheader"] == 0 {
			t.Errorf("%s: %d cells are seen, %v are read", path, cells, nodes)
		}
	}
}

// The commands in the text of a page are in one line, and names are in the font of the text.
func TestFontsAndLines(t *testing.T) {
	v := newTab(t, screens[2])
	v.open(t, kinds["package"])
	if broken := value[string](t, v, `[...document.querySelectorAll("#install~p code,#install~[open] p code")]
		.map(c => c.getClientRects().length).join("")`); broken != "11111" {
		t.Errorf("lines of commands: %s", broken)
	}
	for _, kind := range []string{"package", "bundle", "channel"} {
		v.open(t, kinds[kind])
		if got := value[string](t, v, `[...document.querySelectorAll(".id,.by,.v:not(tspan),.way li,tbody th,tbody th a")]
			.filter(e => getComputedStyle(e).fontFamily !== getComputedStyle(document.body).fontFamily)
			.map(e => e.outerHTML).join()`); got != "" {
			t.Errorf("%s: in another font: %s", kind, got)
		}
	}
}
