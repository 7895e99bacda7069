package upgrade

import (
	"maps"
	"slices"
	"strings"
)

// Account is what changes in the permissions of an account in a scope.
type Account struct {
	// Subject is KIND NAMESPACE/NAME of the account; of a role that no manifest binds, KIND NAME.
	Subject string `json:"subject"`
	// Namespace is the scope; empty: the cluster.
	Namespace string `json:"namespace,omitempty"`
	// Gained and Lost are sorted. What another permission of the same account covers, with "*" or for the cluster, is
	// neither gained nor lost.
	Gained []PermissionChange `json:"gained"`
	Lost   []PermissionChange `json:"lost"`
}

// PermissionChange is what an account may do with a resource, or with a URL.
type PermissionChange struct {
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
func (p PermissionChange) String() string {
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

// coversURL reports whether a grant for URLs that begin in one way allows all that another one allows.
func (g grant) coversURL(other grant) bool {
	return other.url != "" && strings.HasPrefix(other.url, strings.TrimSuffix(g.url, "*")) &&
		(g.verb == other.verb || g.verb == "*")
}

// wider yields the grants that allow all that one allows, beginning with that, but for URLs that begin in one way.
func (g grant) wider(yield func(grant) bool) {
	resources := []string{g.resource, "*"}
	if _, sub, ok := strings.Cut(g.resource, "/"); ok {
		resources = append(resources, "*/"+sub)
	}
	for _, group := range []string{g.group, "*"} {
		for _, resource := range resources {
			for _, name := range []string{g.name, ""} {
				for _, verb := range []string{g.verb, "*"} {
					if !yield(grant{group, resource, name, g.url, g.role, verb}) {
						return
					}
				}
			}
		}
	}
}

// grants are those of all accounts.
type grants map[scope]*granted

// granted is what an account has in a scope.
type granted struct {
	all   map[grant]bool
	broad []grant // those with URLs that end with "*"
}

func (g grants) at(s scope) *granted {
	if g[s] == nil {
		g[s] = &granted{all: map[grant]bool{}}
	}
	return g[s]
}

func (g *granted) add(one grant, left *budget) {
	if left.steps--; g.all[one] || left.spent() {
		return
	}
	g.all[one] = true
	left.grants--
	if strings.HasSuffix(one.url, "*") {
		g.broad = append(g.broad, one)
	}
	if len(g.broad) > maxBroad {
		left.grants = -1
	}
}

// allows reports whether the account has a permission in its scope, or in the whole cluster.
func (g grants) allows(at scope, one grant) bool {
	for _, in := range []scope{at, {at.subject, ""}} {
		mine := g[in]
		if mine == nil {
			continue
		}
		for wide := range one.wider {
			if mine.all[wide] {
				return true
			}
		}
		if slices.ContainsFunc(mine.broad, func(b grant) bool { return b.coversURL(one) }) {
			return true
		}
	}
	return false
}

// comparePermissions returns the accounts whose permissions change. The error is about limits.
func comparePermissions(before, after *set) ([]Account, error) {
	had, err := before.grants()
	if err != nil {
		return nil, err
	}
	has, err := after.grants()
	if err != nil {
		return nil, err
	}
	scopes := map[string]scope{}
	for _, side := range []grants{had, has} {
		for s := range side {
			scopes[s.subject+"\x00"+s.namespace] = s
		}
	}
	out := []Account{}
	for _, key := range slices.Sorted(maps.Keys(scopes)) {
		s := scopes[key]
		a := Account{s.subject, s.namespace, findMissing(has.at(s).all, had, s), findMissing(had.at(s).all, has, s)}
		if len(a.Gained)+len(a.Lost) > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}

// findMissing returns the grants that other does not allow.
func findMissing(all map[grant]bool, other grants, at scope) []PermissionChange {
	missing := map[string]*PermissionChange{}
	for g := range all {
		if other.allows(at, g) {
			continue
		}
		key := strings.Join([]string{g.role, g.group, g.resource, g.name, g.url}, "\x00")
		p := missing[key]
		if p == nil {
			p = &PermissionChange{Group: g.group, Resource: g.resource, Name: g.name, URL: g.url, Role: g.role}
			missing[key] = p
		}
		if g.role == "" {
			p.Verbs = append(p.Verbs, g.verb)
		}
	}
	out := []PermissionChange{}
	for _, key := range slices.Sorted(maps.Keys(missing)) {
		slices.Sort(missing[key].Verbs)
		out = append(out, *missing[key])
	}
	return out
}
