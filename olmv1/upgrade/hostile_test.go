package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

func manifest(group, kind, name, text string) upgrade.Manifest {
	return upgrade.Manifest{Object: upgrade.Object{Group: group, Kind: kind, Name: name}, JSON: []byte(text)}
}

// list returns n elements, which may have their number.
func list(n int, element func(i int) string) string {
	var all []string
	for i := range n {
		all = append(all, element(i))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// The work on manifests does not grow with products of what they say, nor with the square of their size or depth.
func TestHostileManifests(t *testing.T) {
	const roles = "rbac.authorization.k8s.io"
	same := func(text string) func(int) string { return func(int) string { return text } }
	numbered := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i) }
	}
	role := func(fields string) []upgrade.Manifest {
		return []upgrade.Manifest{manifest(roles, "ClusterRole", "r", `{"rules":[{`+fields+`}]}`)}
	}
	object := func(text string) []upgrade.Manifest { return []upgrade.Manifest{manifest("", "X", "x", text)} }
	nested := func(depth int, within string) string {
		return strings.Repeat(`{"a":`, depth) + within + strings.Repeat("}", depth)
	}
	many := func(group, kind, name string) (all []upgrade.Manifest) {
		for i := range 30_000 {
			all = append(all, manifest(group, kind, fmt.Sprint(name, i), "{}"))
		}
		return all
	}
	definition := func(schema string) []upgrade.Manifest {
		return []upgrade.Manifest{manifest("apiextensions.k8s.io", "CustomResourceDefinition", "d",
			`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":`+schema+`}}]}}`)}
	}
	wide := strings.Repeat("0,", 200_000)
	stars := func(name string) []upgrade.Manifest {
		return role(`"apiGroups":["*"],"resources":` + list(90_000, numbered(`"`+name+`%d"`)) + `,"verbs":["get"]`)
	}
	bound := role(`"apiGroups":[""],"resources":` + list(50_000, numbered(`"r%d"`)) + `,"verbs":["get"]`)
	for i := range 3000 {
		bound = append(bound, manifest(roles, "ClusterRoleBinding", fmt.Sprint(i),
			`{"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"u"}]}`))
	}
	for name, c := range map[string]struct {
		from, to []upgrade.Manifest
		limit    bool
	}{
		"a deep value":              {from: object(nested(9000, "0")), to: object(nested(9000, "1"))},
		"a deep list":               {from: object(nested(2000, "["+wide+"1]")), to: object(nested(2000, "["+wide+"2]"))},
		"renamed roles":             {from: many(roles, "Role", "a"), to: many(roles, "Role", "b")},
		"other objects":             {from: many("", "image", "a"), to: many("", "image", "b")},
		"stars":                     {from: stars("a"), to: stars("b")},
		"one role of many bindings": {to: bound, limit: true},
		"a rule that repeats itself": {limit: true, to: role(`"apiGroups":` + list(1000, same(`""`)) + `,"resources":` +
			list(1000, same(`"r"`)) + `,"verbs":` + list(1000, same(`"get"`)))},
		"a rule without verbs": {limit: true, to: role(`"apiGroups":` + list(2000, same(`""`)) + `,"resources":` +
			list(2000, same(`"r"`)) + `,"resourceNames":` + list(2000, same(`"n"`)))},
		"required fields": {from: definition("{}"), to: definition(`{"required":` + list(100_000, numbered(`"f%d"`)) +
			`,"properties":{` + strings.Trim(list(100_000, numbered(`"f%d":{}`)), "[]") + `}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			go func() {
				_, err := upgrade.Compare(context.Background(), c.from, c.to, nil)
				done <- err
			}()
			select {
			case err := <-done:
				if errors.Is(err, fault.ErrLimit) != c.limit || err != nil && !c.limit {
					t.Errorf("the error is %v", err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it takes too long")
			}
		})
	}
}

// What another permission covers is neither gained nor lost.
func TestCovered(t *testing.T) {
	const roles = "rbac.authorization.k8s.io"
	role := func(rule string) []upgrade.Manifest {
		return []upgrade.Manifest{manifest(roles, "ClusterRole", "r", `{"rules":[`+rule+`]}`)}
	}
	rule := func(group, resource, name, verb string) string {
		return fmt.Sprintf(`{"apiGroups":[%q],"resources":[%q],"resourceNames":[%s],"verbs":[%q]}`, group, resource, name, verb)
	}
	url := func(path, verb string) string {
		return fmt.Sprintf(`{"nonResourceURLs":[%q],"verbs":[%q]}`, path, verb)
	}
	one := rule("g", "r/status", `"n"`, "get")
	for _, c := range []struct {
		wide, narrow string
		covered      bool
	}{
		{rule("*", "*", "", "*"), one, true},
		{rule("g", "*/status", "", "get"), one, true},
		{rule("g", "*/scale", "", "get"), one, false},
		{rule("*", "r/status", `"n"`, "get"), one, true},
		{rule("g", "r/status", `"other"`, "*"), one, false},
		{rule("g", "r", "", "*"), one, false},
		{rule("*", "*", "", "*"), url("/a", "get"), false},
		{url("*", "*"), one, false},
		{url("/a/*", "*"), url("/a/b", "get"), true},
		{url("/a", "*"), url("/a", "get"), true},
		{url("/a*", "post"), url("/a/b", "get"), false},
		{url("/b*", "*"), url("/a/b", "get"), false},
	} {
		r, err := upgrade.Compare(t.Context(), role(c.narrow), role(c.wide), nil)
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(r.Permissions, func(a upgrade.Account) bool { return len(a.Lost) > 0 })
		if lost == c.covered {
			t.Errorf("%s in place of %s: %v", c.wide, c.narrow, r.Permissions)
		}
	}
}

// Marking what is refused of many fields does not make the path of a field again for each refusal.
func TestManyRefusals(t *testing.T) {
	const n = 10_000
	definition := func(fields string) []upgrade.Manifest {
		return []upgrade.Manifest{manifest("apiextensions.k8s.io", "CustomResourceDefinition", "d", `{"apiVersion":"apiextensions.k8s.io/v1",`+
			`"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{`+fields+`}}}}]}}`)}
	}
	fields := strings.Trim(list(n, func(i int) string { return fmt.Sprintf(`"f%d":{}`, i) }), "[]")
	var refused []upgrade.RefusedChange
	for i := range n {
		refused = append(refused, upgrade.RefusedChange{Check: "existingFieldRemoval", Message: fmt.Sprintf("x : v1.^.f%d", i)})
	}
	r, err := upgrade.Compare(t.Context(), definition(fields), definition(""),
		func(context.Context, string, []byte, []byte) ([]upgrade.RefusedChange, error) { return refused, nil })
	if err != nil || len(r.Definitions) != 1 {
		t.Fatal(r, err)
	}
	done := make(chan []upgrade.Line, 1)
	go func() { done <- r.Definitions[0].Lines() }()
	select {
	case all := <-done:
		if len(all) != n+1 || !all[n].Refused {
			t.Errorf("%d lines", len(all))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it takes too long")
	}
}
