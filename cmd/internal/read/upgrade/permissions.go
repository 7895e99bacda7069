package upgrade

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// account is what changes in the permissions of an account in a scope.
type account struct {
	// Subject is KIND NAMESPACE/NAME of the account; of a role that no manifest binds, KIND NAME.
	Subject string `json:"subject"`
	// Namespace is the scope; empty: the cluster.
	Namespace string `json:"namespace,omitempty"`
	// Gained and Lost are sorted. What another permission of the same account covers, with "*" or for the cluster, is
	// neither gained nor lost.
	Gained []permissionChange `json:"gained"`
	Lost   []permissionChange `json:"lost"`
}

// permissionChange is what an account may do with a resource, or with a URL.
type permissionChange struct {
	// Group and Resource have "*" for all.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Name is that of the only object; empty: all.
	Name string `json:"name,omitempty"`
	// URL is a path that is no resource.
	URL string `json:"url,omitempty"`
	// Role is a role that the manifests bind and do not have, such as the cluster role "view".
	Role string `json:"role,omitempty"`
	// Verbs are sorted; "*" is all.
	Verbs []string `json:"verbs,omitempty"`
}

// String returns RESOURCE.GROUP [NAME]: VERBS.
func (p permissionChange) String() string {
	what := p.Resource
	if p.Group != "" {
		what += "." + p.Group
	}
	if p.Name != "" {
		what += " " + `"` + p.Name + `"`
	}
	switch {
	case p.Role != "":
		return "what " + p.Role + " allows"
	case p.URL != "":
		what = p.URL
	}
	return what + ": " + strings.Join(p.Verbs, ", ")
}

// scope is where an account has permissions.
type scope struct{ subject, namespace string }

// grant is a permission with one verb.
type grant struct{ group, resource, name, url, role, verb string }

// covers reports whether a grant allows all that another one allows.
func (g grant) covers(other grant) bool {
	match := func(mine, other string) bool { return mine == other || mine == "*" }
	resource := match(g.resource, other.resource)
	if sub, ok := strings.CutPrefix(g.resource, "*/"); ok && strings.HasSuffix(other.resource, "/"+sub) {
		resource = true
	}
	url := g.url == other.url
	if prefix, ok := strings.CutSuffix(g.url, "*"); ok && strings.HasPrefix(other.url, prefix) {
		url = true
	}
	return g.role == other.role && (g.url == "") == (other.url == "") && url && match(g.group,
		other.group) && resource &&
		(g.name == "" || g.name == other.name) && match(g.verb, other.verb)
}

// broad reports whether a grant may cover others of another resource, verb or URL.
func (g grant) broad() bool {
	return g.group == "*" || g.verb == "*" || strings.HasPrefix(g.resource, "*") || strings.HasSuffix(g.url, "*")
}

// grants are those of all accounts.
type grants map[scope]*granted

// granted is what an account has in a scope.
type granted struct {
	all   map[grant]bool
	broad []grant
}

func (g grants) at(s scope) *granted {
	if g[s] == nil {
		g[s] = &granted{all: map[grant]bool{}}
	}
	return g[s]
}

func (g *granted) add(one grant) {
	if g.all[one] || len(g.all) >= maxGrants {
		return
	}
	g.all[one] = true
	if one.broad() {
		g.broad = append(g.broad, one)
	}
}

// allows reports whether the account has a permission in its scope, or in the whole cluster.
func (g grants) allows(at scope, one grant) bool {
	unnamed := one
	unnamed.name = ""
	for _, in := range []scope{at, {at.subject, ""}} {
		mine := g[in]
		if mine != nil && (mine.all[one] || mine.all[unnamed] || slices.ContainsFunc(mine.broad, func(b grant) bool {
			return b.covers(one)
		})) {
			return true
		}
	}
	return false
}

// comparePermissions returns the accounts whose permissions change.
func comparePermissions(before, after *set) []account {
	had, has := before.grants(), after.grants()
	scopes := slices.Collect(maps.Keys(had))
	for s := range has {
		if had[s] == nil {
			scopes = append(scopes, s)
		}
	}
	slices.SortFunc(scopes, func(x, y scope) int {
		return cmp.Or(cmp.Compare(x.subject, y.subject), cmp.Compare(x.namespace, y.namespace))
	})
	out := []account{}
	for _, s := range scopes {
		a := account{s.subject, s.namespace, findMissing(has.at(s).all, had, s), findMissing(had.at(s).all, has, s)}
		if len(a.Gained)+len(a.Lost) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// findMissing returns the grants that other does not allow.
func findMissing(all map[grant]bool, other grants, at scope) []permissionChange {
	verbs := map[grant][]string{}
	for g := range all {
		if !other.allows(at, g) {
			key := g
			key.verb = ""
			verbs[key] = append(verbs[key], g.verb)
		}
	}
	keys := slices.SortedFunc(maps.Keys(verbs), func(x, y grant) int {
		return cmp.Or(cmp.Compare(x.role, y.role), cmp.Compare(x.group, y.group), cmp.Compare(x.resource, y.resource),
			cmp.Compare(x.name, y.name), cmp.Compare(x.url, y.url))
	})
	out := []permissionChange{}
	for _, k := range keys {
		p := permissionChange{Group: k.group, Resource: k.resource, Name: k.name, URL: k.url, Role: k.role, Verbs: verbs[k]}
		if slices.Sort(p.Verbs); p.Role != "" {
			p.Verbs = nil
		}
		out = append(out, p)
	}
	return out
}
