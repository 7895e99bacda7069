package upgrade

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
)

const rbacGroup = "rbac.authorization.k8s.io"

// isRole and isBinding report whether an object is one, for a namespace or for the cluster.
func isRole(o Object) bool {
	return o.Group == rbacGroup && (o.Kind == "Role" || o.Kind == "ClusterRole")
}

func isBinding(o Object) bool {
	return o.Group == rbacGroup && (o.Kind == "RoleBinding" || o.Kind == "ClusterRoleBinding")
}

// Limits of what roles allow, in combinations of groups, resources, names and verbs: those of all accounts together,
// however often they are said, and the URLs that end with "*" of an account in a scope, each of which all others are
// compared with.
const (
	maxGrants = 100_000
	maxBroad  = 100
)

// maxSteps bounds the work on combinations: those that are said again, and those without a verb.
const maxSteps = 10 * maxGrants

// budget is how much the roles may still say; it is used up when one of both is negative.
type budget struct{ grants, steps int }

func (b *budget) spent() bool { return b.grants < 0 || b.steps < 0 }

// grants returns what the roles and bindings allow. Roles without a binding are their own subjects. The error is about
// the limits.
func (s *set) grants() (grants, error) {
	out, left := grants{}, budget{maxGrants, maxSteps}
	bound := map[Object]bool{}
	for _, key := range s.order {
		if !isBinding(key) {
			continue
		}
		role := s.roleOf(key)
		bound[role] = true
		for _, subject := range s.subjectsOf(key) {
			s.addRole(out, scope{subject, key.Namespace}, role, &left)
		}
	}
	for _, key := range s.order {
		if isRole(key) && !bound[key] {
			s.addRole(out, scope{key.String(), key.Namespace}, key, &left)
		}
	}
	if left.spent() {
		return nil, fmt.Errorf("%w: the roles allow more than %d combinations of groups, resources and verbs, or an account "+
			"more than %d URLs with \"*\"", fault.ErrLimit, maxGrants, maxBroad)
	}
	return out, nil
}

func (s *set) roleOf(binding Object) Object {
	ref, _ := s.items[binding].content["roleRef"].(map[string]any)
	role := Object{Group: rbacGroup}
	role.Kind, _ = ref["kind"].(string)
	role.Name, _ = ref["name"].(string)
	if role.Kind == "Role" {
		role.Namespace = binding.Namespace
	}
	return role
}

// subjectsOf returns the subjects of a binding, sorted.
func (s *set) subjectsOf(binding Object) []string {
	var out []string
	list, _ := s.items[binding].content["subjects"].([]any)
	for _, v := range list {
		subject, _ := v.(map[string]any)
		var o Object
		o.Kind, _ = subject["kind"].(string)
		o.Namespace, _ = subject["namespace"].(string)
		o.Name, _ = subject["name"].(string)
		out = append(out, o.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addRole adds the rules of a role to an account until left, which becomes less with each grant, is negative.
func (s *set) addRole(out grants, at scope, role Object, left *budget) {
	one, ok := s.items[role]
	mine := out.at(at)
	var verbs []string
	add := func(g grant) (more bool) {
		left.steps--
		for _, g.verb = range verbs {
			mine.add(g, left)
		}
		return !left.spent()
	}
	if !ok {
		verbs = []string{""}
		add(grant{role: role.String()})
		return
	}
	rules, _ := one.content["rules"].([]any)
	for _, v := range rules {
		if left.steps--; left.spent() {
			return
		}
		rule, _ := v.(map[string]any)
		verbs = stringsOf(rule["verbs"])
		for _, url := range stringsOf(rule["nonResourceURLs"]) {
			if !add(grant{url: url}) {
				return
			}
		}
		names := stringsOf(rule["resourceNames"])
		if len(names) == 0 {
			names = []string{""}
		}
		resources := stringsOf(rule["resources"])
		for _, group := range stringsOf(rule["apiGroups"]) {
			for _, resource := range resources {
				for _, name := range names {
					if !add(grant{group: group, resource: resource, name: name}) {
						return
					}
				}
			}
		}
	}
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// pairRenamed takes roles and bindings that have another name, but the same kind, namespace and subjects, out of the
// objects that are added and removed. What they allow is compared by subject.
func (r *Report) pairRenamed(before, after *set) {
	old, current := before.roleSubjects(), after.roleSubjects()
	like := func(o Object, subjects []string) string { // the same for those that differ in their names only
		return fmt.Sprintf("%q", append([]string{o.Group, o.Kind, o.Namespace}, subjects...))
	}
	added := map[string][]Object{}
	for _, o := range r.Added {
		if subjects := current[o]; len(subjects) > 0 {
			added[like(o, subjects)] = append(added[like(o, subjects)], o)
		}
	}
	renamed := map[Object]bool{}
	r.Removed = slices.DeleteFunc(r.Removed, func(gone Object) bool {
		if !isRole(gone) && !isBinding(gone) || len(old[gone]) == 0 {
			return false
		}
		key := like(gone, old[gone])
		if len(added[key]) == 0 {
			return false
		}
		now := added[key][0]
		added[key], renamed[now] = added[key][1:], true
		r.Renamed = append(r.Renamed, rename{gone, now})
		return true
	})
	r.Added = slices.DeleteFunc(r.Added, func(o Object) bool { return renamed[o] })
}

// roleSubjects returns the subjects of bindings and of the roles that they bind.
func (s *set) roleSubjects() map[Object][]string {
	out := map[Object][]string{}
	for _, key := range s.order {
		if isBinding(key) {
			out[key] = s.subjectsOf(key)
			role := s.roleOf(key)
			out[role] = append(out[role], out[key]...)
		}
	}
	return out
}
