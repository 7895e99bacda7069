package upgrade

import (
	"slices"
)

const rbacGroup = "rbac.authorization.k8s.io"

// isRole and isBinding report whether an object is one, for a namespace or for the cluster.
func isRole(o Object) bool {
	return o.Group == rbacGroup && (o.Kind == "Role" || o.Kind == "ClusterRole")
}

func isBinding(o Object) bool {
	return o.Group == rbacGroup && (o.Kind == "RoleBinding" || o.Kind == "ClusterRoleBinding")
}

// maxGrants bounds the combinations of groups, resources, names and verbs of an account in a scope; more are left out.
const maxGrants = 20_000

// grants returns what the roles and bindings allow. Roles without a binding are their own subjects.
func (s *set) grants() grants {
	out := grants{}
	bound := map[Object]bool{}
	for _, key := range s.order {
		if !isBinding(key) {
			continue
		}
		role := s.roleOf(key)
		bound[role] = true
		for _, subject := range s.subjectsOf(key) {
			s.addRole(out, scope{subject, key.Namespace}, role)
		}
	}
	for _, key := range s.order {
		if isRole(key) && !bound[key] {
			s.addRole(out, scope{key.String(), key.Namespace}, key)
		}
	}
	return out
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

// addRole adds the rules of a role to an account.
func (s *set) addRole(out grants, at scope, role Object) {
	one, ok := s.items[role]
	mine := out.at(at)
	if !ok {
		mine.add(grant{role: role.String()})
		return
	}
	rules, _ := one.content["rules"].([]any)
	for _, v := range rules {
		rule, _ := v.(map[string]any)
		verbs := stringsOf(rule["verbs"])
		for _, url := range stringsOf(rule["nonResourceURLs"]) {
			for _, verb := range verbs {
				mine.add(grant{url: url, verb: verb})
			}
		}
		names := stringsOf(rule["resourceNames"])
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range stringsOf(rule["apiGroups"]) {
			for _, resource := range stringsOf(rule["resources"]) {
				for _, name := range names {
					for _, verb := range verbs {
						mine.add(grant{group: group, resource: resource, name: name, verb: verb})
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
	for _, gone := range slices.Clone(r.Removed) {
		i := slices.IndexFunc(r.Added, func(o Object) bool {
			return (isRole(gone) || isBinding(gone)) && o.Kind == gone.Kind && o.Group == gone.Group &&
				o.Namespace == gone.Namespace && len(old[gone]) > 0 && slices.Equal(old[gone], current[o])
		})
		if i < 0 {
			continue
		}
		r.Renamed = append(r.Renamed, rename{gone, r.Added[i]})
		r.Added = slices.Delete(r.Added, i, i+1)
		r.Removed = slices.DeleteFunc(r.Removed, func(o Object) bool { return o == gone })
	}
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
