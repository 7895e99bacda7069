package web

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// proseOf returns what a page shows of a description.
func proseOf(description string) string {
	var p page
	p.writeProse(description, 3)
	return p.String()
}

// proseElements are the elements of a description with their attributes.
var proseElements = map[string][]string{
	"p": {"class"}, "br": nil, "hr": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "ul": nil, "ol": nil, "li": nil,
	"blockquote": nil, "pre": {"tabindex"}, "code": nil, "em": nil, "strong": nil, "del": nil,
	"a":     {"href", "rel", "class"},
	"table": nil, "tbody": nil, "tr": nil, "th": {"scope"}, "td": nil,
	"div":     {"class", "data-copy", "tabindex", "role", "aria-label"},
	"details": nil, "summary": nil,
}

// checkProse returns what is wrong with a description, whatever it shows.
func checkProse(t testing.TB, shown string) error {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(shown), &html.Node{Type: html.ElementNode, Data: "section",
		DataAtom: atom.Section})
	if err != nil {
		return err
	}
	root := &html.Node{Type: html.DocumentNode}
	for _, n := range nodes {
		root.AppendChild(n)
	}
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			if strings.ContainsAny(n.Data, "\x00\x1b\u202e\u2028") {
				return fmt.Errorf("%q has characters that cannot be seen", n.Data)
			}
			continue
		case html.ElementNode:
		default:
			return fmt.Errorf("a node of type %d: %q", n.Type, n.Data)
		}
		attributes, ok := proseElements[n.Data]
		if !ok {
			return fmt.Errorf("an element %q", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(attributes, a.Key) {
				return fmt.Errorf("%s has an attribute %s=%q", n.Data, a.Key, a.Val)
			}
			if a.Key != "href" {
				continue
			}
			u, err := url.Parse(a.Val)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "mailto" {
				return fmt.Errorf("a link to %q", a.Val)
			}
			if !slices.Contains(n.Attr, html.Attribute{Key: "rel", Val: "nofollow noopener noreferrer"}) {
				return fmt.Errorf("a link without rel: %v", n.Attr)
			}
		}
	}
	return nil
}

func TestProse(t *testing.T) {
	const rel = ` rel="nofollow noopener noreferrer">`
	for name, test := range map[string]struct{ in, want string }{
		"nothing":     {" \n", `<p class="faint">There is no description.</p>`},
		"a paragraph": {"a\nb & c", "<p>a\nb &amp; c</p>\n"},
		"emphasis": {"*a* **b** ~~c~~ `d<e`",
			"<p><em>a</em> <strong>b</strong> <del>c</del> <code>d&lt;e</code></p>\n"},
		"headings":     {"# a\n\n### b\n\n# c", "<h3>a</h3>\n<h4>b</h4>\n<h3>c</h3>\n"},
		"low headings": {"### a\n\n## b\n\n#### c", "<h3>a</h3>\n<h3>b</h3>\n<h4>c</h4>\n"},
		"quoted":       {"> # a", "<blockquote><p><strong>a</strong></p>\n</blockquote>\n"},
		"a list":       {"- a\n- b", "<ul><li>a</li>\n<li>b</li>\n</ul>\n"},
		"numbers":      {"1. a\n2. b", "<ol><li>a</li>\n<li>b</li>\n</ol>\n"},
		"code":         {"```yaml\na: <b>\n```", `<div class="snippet" data-copy="code"><pre tabindex="0"><code>a: &lt;b&gt;</code></pre></div>` + "\n"},
		"a line":       {"a\n\n---", "<p>a</p>\n<hr>\n"},
		"a link": {"[a](https://x.test/?a=1&b=2)",
			`<p><a href="https://x.test/?a=1&amp;b=2"` + rel + "a</a></p>\n"},
		"a mailbox":     {"<a@x.test>", `<p><a href="mailto:a@x.test"` + rel + "a@x.test</a></p>\n"},
		"a bare link":   {"see https://x.test.", `<p>see <a href="https://x.test"` + rel + "https://x.test</a>.</p>\n"},
		"script link":   {"[a](javascript:alert(1))", "<p>a</p>\n"},
		"hidden script": {"[a](java&#115;cript:alert(1)) [b](JaVaScRiPt:x) [c](data:text/html,x)", "<p>a b c</p>\n"},
		"other links":   {"[a](../b) [c](//x.test) [d](ftp://x.test) [e](https://u:p@x.test/)", "<p>a c d e</p>\n"},
		"a picture": {"![a *b*](https://x.test/y.png)",
			`<p><a class="picture" href="https://x.test/y.png"` + rel + "a b</a></p>\n"},
		"no text": {"![](https://x.test/y.png)",
			`<p><a class="picture" href="https://x.test/y.png"` + rel + "picture</a></p>\n"},
		"a badge": {"[![a](https://x.test/y.svg)](https://x.test)",
			`<p><a href="https://x.test"` + rel + "a</a></p>\n"},
		"bad picture":  {"![a](javascript:x)", "<p>a</p>\n"},
		"tags":         {"<p align=center>a<br/>b</p><!-- c --><img src=x onerror=alert(1)>", "<p>a<br>\nb</p>\n"},
		"script":       {"a<script>alert(1) *b*</script>c\n\nd<style>e", "<p>ac</p>\n<p>d</p>\n"},
		"placeholders": {"oc new-project <namespace>", "<p>oc new-project &lt;namespace&gt;</p>\n"},
		"entities":     {`&lt;b&gt; \<i> &#x202e; \*`, "<p>&lt;b&gt; &lt;i&gt; \\u202e *</p>\n"},
		"a table": {"a|b\n-|-\n<c>|`d`",
			`<div class="scroll" tabindex="0" role="group" aria-label="Table in the description"><table>` +
				`<tr><th scope="col">a</th><th scope="col">b</th></tr>` +
				"\n<tr><td>&lt;c&gt;</td><td><code>d</code></td></tr>\n</table></div>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := proseOf(test.in)
			if got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if err := checkProse(t, got); err != nil {
				t.Error(err)
			}
		})
	}
}

// The line in the list is the first paragraph of a description.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"# Title\n\n[![Badge](https://x.test/b.svg)](https://x.test)\n\nIt **does** [this](https://x.test) &amp;\n`that`.\n\nMore": "It does this & that.",
		"- a list\n": "", "": "", strings.Repeat(">", 100) + " a": strings.Repeat(">", 100) + " a",
	} {
		if got := plain(in); got != want {
			t.Errorf("%.40q: got %q, want %q", in, got, want)
		}
	}
}

// A long description is folded, and a very long one is cut where a line ends.
func TestLongProse(t *testing.T) {
	got := proseOf(strings.Repeat("word é\n\n", 10_000))
	if err := checkProse(t, got); err != nil {
		t.Error(err)
	}
	if strings.Count(got, "<details>") != 1 || !strings.HasSuffix(got, "<p>…</p>\n</details>") ||
		len(got) > 4*maxMarkdown {
		t.Errorf("%d bytes: %.100s", len(got), got)
	}
	if short := proseOf("a\n\nb"); strings.Contains(short, "<details>") {
		t.Error("a short description is folded")
	}
}

// hostileProse are texts for which a parser takes long, nests deeply or writes much.
func hostileProse() map[string]string {
	texts := map[string]string{}
	for _, part := range []string{"[", "[a](", "![", "*a_ ", "**a", ">", "> ", "- ", "* - + 1. ", "<!-- ", "<a ", "<?",
		"<![CDATA[", "www.a.b ", "http://a.b(", "a@b", "~~a ", "[a]", "][", "[a]: b\n", "&a;", `\`, "_", "x_", "```\n",
		"a\n=\n", ">a\n", "- a\n", "|", "|-|\n", "a|b\n-|-\n", "\t- a\n", "[a](<b", "<http:", "![[]()", "a  \n",
		"`a``b",
		"# ", "<details><summary>", "\x00\x1b\u202e"} {
		texts[part] = strings.Repeat(part, 2*maxMarkdown/len(part))
	}
	texts["cells"] = strings.Repeat("|a", 3000) + "\n" + strings.Repeat("|-", 3000) + "\n" + strings.Repeat("|\n",
		10_000)
	texts["deep list"], texts["deep quote"] = "", ""
	for i := range 200 {
		texts["deep list"] += strings.Repeat("  ", i) + "- a\n"
		texts["deep quote"] += strings.Repeat("> ", i) + "a\n"
	}
	return texts
}

// Whatever a description is, it takes little time and memory, and shows no other elements than others do.
func TestHostileProse(t *testing.T) {
	for name, text := range hostileProse() {
		begin := time.Now()
		got := proseOf(text)
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("%q takes %v", name, took)
		}
		if len(got) > 1<<20 {
			t.Errorf("%q becomes %d bytes", name, len(got))
		}
		if err := checkProse(t, got); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzProse(f *testing.F) {
	for _, text := range hostileProse() {
		f.Add([]byte(text[:min(len(text), 200)]))
	}
	f.Add([]byte("# a\n\n[b](https://x.test \"c\") ![d](e)\n\n| f | g |\n|---|---|\n| h | <i>j</i> |\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := proseOf(string(text))
		if err := checkProse(t, got); err != nil {
			t.Errorf("%v: %s", err, bytes.TrimSpace([]byte(got)))
		}
		if len(got) > 200*len(text)+1000 {
			t.Errorf("%d bytes become %d", len(text), len(got))
		}
	})
}
