package web

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// picks returns the values of a facet on the page of the list, in their order; a "|" stands where the fold begins.
func picks(body, key string) []string {
	var out []string
	part := regexp.MustCompile(`(?s)<fieldset>.*?</fieldset>`)
	for _, set := range part.FindAllString(body, -1) {
		if !strings.Contains(set, `name="`+key+`"`) {
			continue
		}
		for _, m := range regexp.MustCompile(`<details|name="`+key+`" value="([^"]*)"`).FindAllStringSubmatch(set, -1) {
			out = append(out, strings.ReplaceAll(m[1], "&amp;", "&"))
			if m[1] == "" {
				out[len(out)-1] = "|"
			}
		}
	}
	return out
}

// Values that lead to no package come last and are folded; those that are chosen stay.
func TestValuesWithoutPackagesSink(t *testing.T) {
	server := siteOf(t, catalogOf(t, threeOperators)).URL
	for query, want := range map[string][]string{
		"category":                   {"Database", "Storage", "Streaming & Messaging"},
		"category q=rabbit":          {"Streaming & Messaging", "|", "Database", "Storage"},
		"category q=nothing":         {"|", "Database", "Storage", "Streaming & Messaging"},
		"category q=rabbit&provider": {"Streaming & Messaging", "|", "Database", "Storage"},
		"category category=storage&q=rabbit": {"Storage", "Streaming & Messaging", "|",
			"Database"},
		"level q=rabbit":                  {"Full Lifecycle", "|", "Basic Install"},
		"level level=Basic Install":       {"Basic Install", "Full Lifecycle"},
		"level level=Basic Install&q=amq": {"Basic Install", "Full Lifecycle"},
		"provider provider=acme&q=rabbit": {"acme", "VMware"},
		"mode category=storage":           {"OwnNamespace", "|", "AllNamespaces"},
	} {
		key, query, _ := strings.Cut(query, " ")
		body := get(t, server+"/?"+strings.ReplaceAll(query, " ", "+")).body
		if got := picks(body, key); !slices.Equal(got, want) {
			t.Errorf("%s, %q: %q, want %q", key, query, got, want)
		}
	}
	// With many values with packages the fold begins where it does without a search.
	body := get(t, siteOf(t, catalogOf(t, manyOperators(97))).URL+"/?q=number").body
	if got := picks(body, "provider"); slices.Index(got, "|") != maxValues {
		t.Errorf("the fold of %d values begins at %d", len(got), slices.Index(got, "|"))
	}
}

// After a search the page says in which categories most of the packages are, and leads to those.
func TestCategoriesOfHits(t *testing.T) {
	all := append(slices.Clone(threeOperators),
		operator{name: "odd-one", title: "Odd", keyword: "odd"}, operator{name: "odd-two", title: "Odd", keyword: "odd"},
		operator{name: "odd-three", title: "Odd", keyword: "odd", categories: "Odd"},
		operator{name: "evil", keyword: "evil",
			categories: `"><script>alert(1)</script>` + "\u202e" + strings.Repeat("é", 400)},
		operator{name: "four", keyword: "four", categories: "A, B, C, D"})
	server := siteOf(t, catalogOf(t, all)).URL
	for query, want := range map[string]string{
		"q=rabbit":                    "in\u00a0Streaming & Messaging (1)",
		"q=amqp":                      "in\u00a0Database (1), Streaming & Messaging (1)",
		"q=acme":                      "in\u00a0Database (2), Storage (1)",
		"q=four":                      "in\u00a0A (1), B (1), C (1)Sort",
		"q=evil":                      `in` + "\u00a0" + `"><script>alert(1)</script>`,
		"q=odd":                       "",
		"q=nothing":                   "",
		"":                            "",
		"provider=acme":               "",
		"q=acme&category=database":    "",
		"q=acme&provider=Acme&mode=x": "",
	} {
		d := parsePage(t, get(t, server+"/?"+query).body)
		if err := d.check(); err != nil {
			t.Errorf("%q: %v", query, err)
		}
		if want == "" && strings.Contains(d.text, "in\u00a0") || !strings.Contains(d.text, want) {
			t.Errorf("%q: %q is not on the page: %.300s", query, want, d.text)
		}
	}
	body := get(t, server+"/?q=acme&sort=newest").body
	if !strings.Contains(body, `<a href="./?category=database&amp;q=acme&amp;sort=newest">Database</a> (2)`) {
		t.Errorf("no link to the category: %s", body)
	}
	if got := shownNames(get(t, server+"/?category=database&q=acme&sort=newest").body); len(got) != 2 {
		t.Errorf("it leads to %q", got)
	}
}

// The script of the pages adds buttons to references of images: all are marked, and nothing else is.
func TestImagesAreMarked(t *testing.T) {
	const csv = `{"schema":"olm.bundle","package":"p","name":"p.v1","properties":[{"type":"olm.csv.metadata","value":` +
		`{"provider":{"name":"<b>"},"annotations":{"containerImage":"quay.io/x/\"><b>:v1"}}}]}`
	const pkg = `{"schema":"olm.package","name":"p","defaultChannel":"c"}` +
		`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"p.v1"}]}`
	c := contentOf(t, fstest.MapFS{"1.yaml": {Data: []byte(sampleB)}, "2.yaml": {Data: []byte(sampleA)},
		"3.json": {Data: []byte(pkg + csv)}})
	server := siteOf(t, c).URL
	marked := regexp.MustCompile(`<code class="image">([^<]*)</code>|<td class="image"[^>]*><code>([^<]*)</code>`)
	for path, want := range map[string][]string{
		"/bundle?package=alpha&name=alpha.v1.1.0": {"example.test/alpha:v1.1.0", "example.test/operator:v1",
			"example.test/alpha:v1.1.0"},
		"/bundle?package=p&name=p.v1": {"quay.io/x/&#34;&gt;&lt;b&gt;:v1"},
		"/package?name=alpha":         {"example.test/alpha:v1.1.0", "example.test/alpha:v1.0.0"},
		"/images?package=beta":        {"example.test/beta@sha256:" + strings.Repeat("a", 64)},
	} {
		var got []string
		body := get(t, server+path).body
		for _, m := range marked.FindAllStringSubmatch(body, -1) {
			got = append(got, m[1]+m[2])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	d := parsePage(t, get(t, server+"/bundle?package=p&name=p.v1").body)
	if err := d.check(); err != nil || !strings.Contains(d.text, "Bundle imagenone") {
		t.Errorf("a bundle without an image: %v", err)
	}
	if !slices.Contains(d.links, "./?provider=%3Cb%3E") {
		t.Errorf("the provider is no link: %q", d.links)
	}
}

// On a phone, where tables with labels have no columns, each cell that does not speak for itself has the label of its
// column.
func TestCellsHaveTheLabelsOfTheirColumns(t *testing.T) {
	server := siteOf(t, contentOf(t, sampleFS())).URL
	column := regexp.MustCompile(`<th scope="col"[^>]*>([^<]*)</th>`)
	label := regexp.MustCompile(`data-label="([^"]*)"`)
	for path, want := range map[string][]string{
		"/bundle?package=alpha&name=alpha.v1.1.0": {"Upgraded by", "Group Version", "Group Version", "Versions", "Image"},
		"/package?name=alpha":                     {"Group Version", "Group Version", "Versions", "Bundles", "Channels"},
		"/channel?package=alpha&name=stable":      {"Replaces Skips Skip range"},
		"/images?package=alpha":                   {"Bundles"},
	} {
		var got []string
		for _, table := range regexp.MustCompile(`(?s)<table.*?</table>`).FindAllString(get(t, server+path).body, -1) {
			var columns, labels []string
			for _, m := range column.FindAllStringSubmatch(table, -1) {
				columns = append(columns, m[1])
			}
			for _, m := range label.FindAllStringSubmatch(table, -1) {
				if !slices.Contains(columns, m[1]) {
					t.Errorf("%s: no column %q", path, m[1])
				}
				if !slices.Contains(labels, m[1]) {
					labels = append(labels, m[1])
				}
			}
			if labels != nil {
				got = append(got, strings.Join(labels, " "))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// Only code is in the font of code, and the commands and names in the pages' own text do not break.
func TestFonts(t *testing.T) {
	mono := regexp.MustCompile(`([^\n}]*)\{font-family:[^}]*monospace`)
	if got := mono.FindAllStringSubmatch(style, -1); len(got) != 1 || got[0][1] != "code,pre" {
		t.Errorf("monospace: %q", got)
	}
	if !strings.Contains(style, ".own code{white-space:nowrap}") {
		t.Error("no rule for the pages' own text")
	}
	body := get(t, siteOf(t, catalogOf(t, threeOperators)).URL+"/package?name=rabbitmq-cluster-operator").body
	for _, m := range regexp.MustCompile(`(?s)<p( [^>]*)?>[^\n]*?<code>.*?</p>`).FindAllString(body, -1) {
		if !strings.HasPrefix(m, `<p class="own">`) {
			t.Errorf("code that may break: %s", m)
		}
	}
	if n := strings.Count(body, `<p class="own">`); n != 3 {
		t.Errorf("%d paragraphs with code", n)
	}
}

// The links at the top of the page of a package lead to the sections that it has.
func TestJumpLinks(t *testing.T) {
	const jump = `<a href="#examples">Examples</a><a href="#permissions">Permissions</a><a href="#facts">`
	with := strings.Replace(csvThatMay("", "", "i"), `"metadata":{`, `"metadata":{"annotations":{"alm-examples":"{\"kind\":\"A\"}"},`, 1)
	body := get(t, siteWith(t, upgradesOf(t, release{name: "p.v0", objects: []string{with}}), nil).URL+"/package?name=p").body
	if !strings.Contains(body, jump) || !strings.Contains(body, `id="examples"`) || !strings.Contains(body, `id="permissions"`) {
		t.Errorf("the page does not have %s:\n%s", jump, body)
	}
	body = get(t, siteWith(t, upgradesOf(t, release{name: "p.v0"}), nil).URL+"/package?name=p").body
	for _, not := range []string{"#examples", "#permissions", "#provided"} {
		if strings.Contains(body, not) {
			t.Errorf("it links to %s", not)
		}
	}
}

// A card's foot is one line that says what its bars are, and a command is not divided within its flags.
func TestFootOfCards(t *testing.T) {
	if !strings.Contains(assets()[assetPath("style.css")].text, ".foot .v{color:var(--text);font-weight:600;white-space:nowrap;overflow:hidden") {
		t.Error("a long version is on more than one line")
	}
	p := &page{c: contentOf(t, sampleFS())}
	p.card(&packageSummary{name: "a", version: "1.0.0-" + strings.Repeat("x", 60), level: 3})
	for _, want := range []string{`title="Version: 1.0.0-xxx`, `<span aria-hidden="true">Level 3</span>`} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the card does not have %s: %s", want, p.String())
		}
	}
}
