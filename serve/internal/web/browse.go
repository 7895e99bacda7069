package web

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pageSize is how many packages one page of the list has.
const pageSize = 24

// Limits of what a request for the list may name.
const (
	maxWords  = 12
	maxChosen = 50 // values of one filter
)

// facet is a property of packages by which the list is filtered.
type facet struct {
	key    string // of the query
	label  literal
	values func(*packageSummary) []string
	ranked []string // the values in their order, if it is not that of the alphabet
}

// installModes are OLM's, the widest first.
var installModes = []string{"AllNamespaces", "MultiNamespace", "SingleNamespace", "OwnNamespace"}

// categories is the place of the categories in facets.
const categories = 0

var facets = []facet{
	{key: "category", label: "Category", values: func(s *packageSummary) []string { return s.categories }},
	{key: "provider", label: "Provider", values: func(s *packageSummary) []string {
		if s.provider == "" {
			return nil
		}
		return []string{s.provider}
	}},
	{key: "level", label: "Capability level", ranked: levels, values: func(s *packageSummary) []string {
		if s.level == 0 {
			return nil
		}
		return levels[s.level-1 : s.level]
	}},
	{key: "mode", label: "Install mode", ranked: installModes,
		values: func(s *packageSummary) []string { return s.modes }},
	{key: "feature", label: "Infrastructure features", values: func(s *packageSummary) []string { return s.features }},
}

// choice is what a request asks the list for.
type choice struct {
	text   string
	words  []string
	chosen []map[string]bool // by facet: the values of which a package has one, by their folded form
	sort   string
	page   int
}

// fold returns the form in which values of a facet are compared: catalogs spell them in several ways.
func fold(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

func readChoice(query url.Values) choice {
	c := choice{text: clip(strings.TrimSpace(query.Get("q")), 200), sort: query.Get("sort"), page: 1}
	c.words = strings.Fields(strings.ToLower(c.text))
	c.words = c.words[:min(len(c.words), maxWords)]
	for _, f := range facets {
		chosen := map[string]bool{}
		for _, v := range query[f.key][:min(len(query[f.key]), maxChosen)] {
			if v = fold(v); v != "" {
				chosen[v] = true
			}
		}
		c.chosen = append(c.chosen, chosen)
	}
	if n, err := strconv.Atoi(query.Get("page")); err == nil && n > 0 {
		c.page = n
	}
	if !slices.ContainsFunc(orders, func(o order) bool { return o.key == c.sort }) {
		c.sort = orders[0].key
	}
	return c
}

// order is a way to sort the list.
type order struct {
	key   string
	label literal
}

var orders = []order{{"", "Best match"}, {"name", "Name"}, {"provider", "Provider"}, {"newest", "Newest"}}

// facetValue is a value of a facet with the number of packages that the list has if it is chosen.
type facetValue struct {
	text   string
	count  int
	chosen bool
}

// useful reports whether a person may want the value: it leads to packages, or can be taken back.
func (v *facetValue) useful() bool { return v.count > 0 || v.chosen }

// found is the answer of the list.
type found struct {
	packages []*packageSummary
	facets   [][]*facetValue // by facet: all values that occur in the catalog
}

// choose returns the packages that a choice asks for, and for each value of each facet how many packages have it of
// those that the other facets and the search leave.
func (c *Content) choose(want choice) found {
	var out found
	counts := make([]map[string]*facetValue, len(facets))
	for i := range counts {
		counts[i] = map[string]*facetValue{}
	}
	scores := map[*packageSummary]int{}
	for i := range c.packages {
		s := &c.packages[i]
		score, matches := s.score(want.words)
		misses, missed := 0, 0
		for f := range facets {
			if !want.allows(f, s) {
				misses, missed = misses+1, f
			}
		}
		for f := range facets {
			for _, text := range facets[f].values(s) {
				v := counts[f][fold(text)]
				if v == nil {
					v = &facetValue{text: text, chosen: want.chosen[f][fold(text)]}
					counts[f][fold(text)] = v
				}
				if matches && (misses == 0 || misses == 1 && missed == f) {
					v.count++
				}
			}
		}
		if matches && misses == 0 {
			out.packages = append(out.packages, s)
			scores[s] = score
		}
	}
	slices.SortStableFunc(out.packages, func(a, b *packageSummary) int {
		switch want.sort {
		case "provider":
			if c := cmp.Or(-compareBool(a.provider != "", b.provider != ""),
				cmp.Compare(fold(a.provider), fold(b.provider))); c != 0 {
				return c
			}
		case "newest":
			if c := b.created.Compare(a.created); c != 0 {
				return c
			}
		case "":
			if c := scores[b] - scores[a]; c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(fold(a.heading()), fold(b.heading())), cmp.Compare(a.name, b.name))
	})
	for f := range facets {
		out.facets = append(out.facets, facets[f].order(counts[f]))
	}
	return out
}

// allows reports whether a package has a chosen value of a facet, or none is chosen.
func (c *choice) allows(f int, s *packageSummary) bool {
	return len(c.chosen[f]) == 0 ||
		slices.ContainsFunc(facets[f].values(s), func(v string) bool { return c.chosen[f][fold(v)] })
}

// order returns the values of a facet in the order in which they are shown: those that lead to packages or are chosen
// come first.
func (f *facet) order(all map[string]*facetValue) []*facetValue {
	return slices.SortedFunc(maps.Values(all), func(a, b *facetValue) int {
		if c := -compareBool(a.useful(), b.useful()); c != 0 {
			return c
		}
		if f.ranked != nil {
			return slices.Index(f.ranked, a.text) - slices.Index(f.ranked, b.text)
		}
		return cmp.Or(cmp.Compare(fold(a.text), fold(b.text)), cmp.Compare(a.text, b.text))
	})
}

// score returns how well a package fits the words of a search; ok is false if it lacks one of them.
func (s *packageSummary) score(words []string) (score int, ok bool) {
	for _, word := range words {
		switch {
		case strings.HasPrefix(s.search.names, word), strings.Contains(s.search.names, " "+word):
			score += 8
		case strings.Contains(s.search.kinds, " "+word+" "):
			score += 7
		case strings.Contains(s.search.names, word):
			score += 5
		case strings.Contains(s.search.kinds, word):
			score += 4
		case strings.Contains(s.search.keywords, word), strings.Contains(s.search.provider, word):
			score += 2
		case strings.Contains(s.search.about, word):
			score++
		default:
			return 0, false
		}
	}
	return score, true
}

// list returns the address of the list with a choice and another page.
func (p *page) list(c *choice, page int) string {
	q := url.Values{}
	if c.text != "" {
		q.Set("q", c.text)
	}
	for i, f := range facets {
		for v := range c.chosen[i] {
			q.Add(f.key, v)
		}
		slices.Sort(q[f.key])
	}
	if c.sort != "" {
		q.Set("sort", c.sort)
	}
	if page > 1 {
		q.Set("page", strconv.Itoa(page))
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(q)) {
		for _, v := range q[key] {
			pairs = append(pairs, key, v)
		}
	}
	return p.to("./", pairs...)
}

// without returns the choice without one value of a facet.
func (c *choice) without(f int, value string) choice {
	out := *c
	out.page = 1
	out.chosen = slices.Clone(c.chosen)
	out.chosen[f] = map[string]bool{}
	for v := range c.chosen[f] {
		if v != value {
			out.chosen[f][v] = true
		}
	}
	return out
}

// with returns the choice with one more value of a facet.
func (c *choice) with(f int, value string) choice {
	out := c.without(f, value)
	out.chosen[f][fold(value)] = true
	return out
}

// mainCategories returns the categories that most of the found packages have, up to three, if a search found them and
// more than half of them have a category.
func (c *choice) mainCategories(got found) []*facetValue {
	with := 0
	for _, s := range got.packages {
		with += min(len(s.categories), 1)
	}
	if len(c.chosen[categories]) > 0 || 2*with <= len(got.packages) {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(got.facets[categories]), func(v *facetValue) bool { return v.count == 0 })
	slices.SortStableFunc(out, func(a, b *facetValue) int { return b.count - a.count })
	return out[:min(len(out), 3)]
}

func (c *choice) narrowed() bool {
	return len(c.words) > 0 || slices.ContainsFunc(c.chosen, func(m map[string]bool) bool { return len(m) > 0 })
}
