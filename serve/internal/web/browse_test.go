package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// operator describes a package of a made-up catalog.
type operator struct {
	name, title, provider, categories, level, created, kind, mode, keyword, about string
	feature                                                                       string
}

// catalogOf returns a catalog of packages with one bundle each.
func catalogOf(t testing.TB, all []operator) *Content {
	t.Helper()
	var text strings.Builder
	enc := json.NewEncoder(&text)
	type object = map[string]any
	for _, o := range all {
		bundle := o.name + ".v1.0.0"
		for _, blob := range []object{
			{"schema": "olm.package", "name": o.name, "defaultChannel": "stable"},
			{"schema": "olm.channel", "package": o.name, "name": "stable", "entries": []object{{"name": bundle}}},
			{"schema": "olm.bundle", "package": o.name, "name": bundle, "image": "example.test/" + o.name,
				"properties": []object{
					{"type": "olm.package", "value": object{"packageName": o.name, "version": "1.0.0"}},
					{"type": "olm.gvk", "value": object{"group": "x.test", "version": "v1", "kind": o.kind}},
					{"type": "olm.csv.metadata", "value": object{
						"displayName": o.title, "provider": object{"name": o.provider}, "keywords": []string{o.keyword},
						"installModes": []object{{"type": o.mode, "supported": true},
							{"type": "Other", "supported": true}},
						"crdDescriptions": object{}, "apiServiceDefinitions": object{},
						"annotations": object{"categories": o.categories, "capabilities": o.level,
							"createdAt":   o.created,
							"description": o.about, "features.operators.openshift.io/" + o.feature: "true"}}},
				}},
		} {
			if err := enc.Encode(blob); err != nil {
				t.Fatal(err)
			}
		}
	}
	return contentOf(t, fstest.MapFS{"c.json": {Data: []byte(text.String())}})
}

var threeOperators = []operator{
	{"rabbitmq-cluster-operator", "Message Queues", "VMware", "Streaming & Messaging", "full lifecycle",
		"2024-03-03T10:00:00Z",
		"RabbitmqCluster", "AllNamespaces", "amqp", "Runs brokers", "disconnected"},
	{"pg", "Postgres", "acme", "Database, Storage", "Basic Install", "2026-01-02", "PostgresCluster", "OwnNamespace",
		"sql",
		"A database that sends messages", "fips-compliant"},
	{"zeta", "", "Acme", "database", "Unheard Of", "soon", "Zeta", "AllNamespaces", "amqp-1.0", "Last", "none"},
}

// shownNames returns the packages on a page of the list, in their order.
func shownNames(body string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`<h2><a href="package\?name=([^"]*)"`).FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return out
}

func TestList(t *testing.T) {
	server := siteOf(t, catalogOf(t, threeOperators)).URL
	const rabbit, pg, zeta = "rabbitmq-cluster-operator", "pg", "zeta"
	for name, test := range map[string]struct {
		query string
		want  []string
	}{
		"by name":                  {"", []string{rabbit, pg, zeta}},
		"by provider":              {"sort=provider", []string{pg, zeta, rabbit}},
		"newest":                   {"sort=newest", []string{pg, rabbit, zeta}},
		"an unknown order":         {"sort=x", []string{rabbit, pg, zeta}},
		"kind of an API":           {"q=RabbitmqCluster", []string{rabbit}},
		"part of kinds":            {"q=cluster", []string{rabbit, pg}},
		"best match first":         {"q=message", []string{rabbit, pg}},
		"keyword":                  {"q=amqp", []string{rabbit, zeta}},
		"provider and keyword":     {"q=ACME+sql", []string{pg}},
		"category":                 {"category=Database", []string{pg, zeta}},
		"two of a filter":          {"category=storage&category=Streaming+%26+Messaging", []string{rabbit, pg}},
		"two filters":              {"category=database&provider=acme&level=Basic+Install", []string{pg}},
		"level":                    {"level=Full+Lifecycle", []string{rabbit}},
		"mode":                     {"mode=AllNamespaces", []string{rabbit, zeta}},
		"a mode that is not OLM's": {"mode=Other", nil},
		"feature":                  {"feature=FIPS", []string{pg}},
		"filter and search":        {"category=database&q=amqp", []string{zeta}},
		"nothing":                  {"category=nothing", nil},
		"a page that is not there": {"page=9", []string{rabbit, pg, zeta}},
		"a page that is no number": {"page=-1&category=", []string{rabbit, pg, zeta}},
	} {
		t.Run(name, func(t *testing.T) {
			a := get(t, server+"/?"+test.query)
			d := parsePage(t, a.body)
			if err := d.check(); err != nil || a.code != http.StatusOK {
				t.Errorf("%d, %v", a.code, err)
			}
			// "Message Queues" comes before "Postgres".
			if got := shownNames(a.body); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if nothing := strings.Contains(d.text, "Nothing matches"); nothing != (len(test.want) == 0) {
				t.Errorf("it says that nothing matches: %v", nothing)
			}
		})
	}
}

// Next to each value of a filter stands how many packages it would show.
func TestFacetCounts(t *testing.T) {
	c := catalogOf(t, threeOperators)
	want := readChoice(url.Values{"provider": {"ACME"}})
	got := c.choose(want)
	all := map[string]int{}
	for f, values := range got.facets {
		for _, v := range values {
			all[facets[f].key+"="+v.text] = v.count
			if v.chosen != (facets[f].key == "provider" && fold(v.text) == "acme") {
				t.Errorf("%q is chosen: %v", v.text, v.chosen)
			}
		}
	}
	for value, count := range map[string]int{"provider=acme": 2, "provider=VMware": 1,
		"category=Streaming & Messaging": 0,
		"category=Database":              2, "category=Storage": 1, "level=Basic Install": 1, "level=Full Lifecycle": 0,
		"mode=AllNamespaces": 1, "mode=OwnNamespace": 1, "feature=FIPS": 1} {
		if got, ok := all[value]; !ok || got != count {
			t.Errorf("%s: %d %v, want %d", value, got, ok, count)
		}
	}
	page := parsePage(t, get(t, siteOf(t, c).URL+"/?provider=acme&q=database").body)
	for _, says := range []string{"2 packages of 3 for “database”", "Provider: acme", "Clear all"} {
		if !strings.Contains(page.text, says) {
			t.Errorf("the list does not say %q", says)
		}
	}
}

// Dates are shown as people write them.
func TestDates(t *testing.T) {
	for in, want := range map[string]string{"2024-03-03T10:00:00Z": "2024-03-03", "2024-03-03": "2024-03-03",
		"2024-03-03 10:00:00": "2024-03-03", "2022-06-15T23:28:40-03:00": "2022-06-16",
		"2024-03-03 10:00:00Z": "2024-03-03",
		"2024-03-03T10:00Z":    "2024-03-03", "05/16/2024": "2024-05-16", "1/2/2024": "2024-01-02",
		"16/05/2024": "", "soon": "", "": "", "0001-01-01T00:00:00Z": ""} {
		got, ok := date(in)
		if s := got.Format("2006-01-02"); ok != (want != "") || ok && s != want {
			t.Errorf("%q: %s %v", in, s, ok)
		}
	}
	body := get(t, siteOf(t, catalogOf(t, threeOperators)).URL+"/package?name=rabbitmq-cluster-operator").body
	if !strings.Contains(body, `<time datetime="2024-03-03">3 March 2024</time>`) {
		t.Error("the date is not there")
	}
	if body := get(t, siteOf(t, catalogOf(t, threeOperators)).URL+"/package?name=zeta").body; !strings.Contains(body,
		"soon") {
		t.Error("a date that cannot be read is not shown as it is")
	}
}

// manyOperators returns the packages of a catalog with some hundred of them.
func manyOperators(n int) []operator {
	var all []operator
	for i := range n {
		all = append(all, operator{fmt.Sprintf("operator-%d-of-many", i), fmt.Sprintf("Operator number %d", i),
			fmt.Sprintf("Provider %d, Inc.", i%97),
			[]string{"Database", "Networking, Security", "Storage", "Monitoring"}[i%4],
			levels[i%5], fmt.Sprintf("20%02d-%02d-01", 10+i%16, 1+i%12), fmt.Sprintf("Kind%dCluster", i),
			installModes[i%4],
			fmt.Sprintf("key%d", i*7919%1000), fmt.Sprintf("%x is what operator %d does for %x in a cluster, "+
				"and this is a description of the usual length for a card.", i*2654435761, i, i*40503), "disconnected"})
	}
	return all
}

// The first page of a catalog of 400 packages takes less than 50 KB, and all packages can be reached from it.
func TestFirstPageIsSmall(t *testing.T) {
	const packages = 400
	server := siteOf(t, catalogOf(t, manyOperators(packages))).URL
	first := get(t, server+"/", "Accept-Encoding", "gzip")
	total := len(first.body)
	for path := range assets() {
		size := len(get(t, server+"/"+path, "Accept-Encoding", "gzip").body)
		t.Logf("%s: %d bytes", path, size)
		total += size
	}
	t.Logf("the list: %d bytes, in all %d", len(first.body), total)
	if total > 50_000/2 {
		t.Errorf("the first page takes %d bytes without icons", total)
	}
	seen := map[string]bool{}
	for at := "/"; at != ""; {
		body := get(t, server+at).body
		for _, name := range shownNames(body) {
			seen[name] = true
		}
		next := regexp.MustCompile(`<a href="\./([^"]*)" rel="next"`).FindStringSubmatch(body)
		if at = ""; next != nil {
			at = "/" + strings.ReplaceAll(next[1], "&amp;", "&")
		}
	}
	if len(seen) != packages {
		t.Errorf("%d packages can be reached", len(seen))
	}
}

// A browser gets a page for an address that is not there, any other client what catalogd answers.
func TestAddressThatIsNotThere(t *testing.T) {
	server := siteOf(t, catalogOf(t, threeOperators)).URL
	a := get(t, server+"/nothing", "Accept", "text/html,*/*")
	if d := parsePage(t, a.body); a.code != http.StatusNotFound || d.check() != nil || !strings.Contains(d.text,
		"Not found") {
		t.Errorf("%d %v %.300s", a.code, d.check(), a.body)
	}
	if a := get(t, server+"/nothing"); a.code != http.StatusNotFound || a.body != "404 page not found\n" {
		t.Errorf("%d %q", a.code, a.body)
	}
}

// The pages show the title that the server has for the catalog, and by default none of its source.
func TestTitle(t *testing.T) {
	for title, want := range map[string]string{"": DefaultTitle, " ": DefaultTitle,
		"Tools <of> Acme": "Tools <of> Acme"} {
		s := New(Options{Title: title})
		s.SetContent(catalogOf(t, threeOperators))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/package?name=pg", nil))
		if d := parsePage(t, w.Body.String()); d.check() != nil || strings.Count(d.text, want) != 3 {
			t.Errorf("%q: %d times, %v", want, strings.Count(d.text, want), d.check())
		}
		s.Close()
	}
}
