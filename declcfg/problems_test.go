package declcfg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
)

// reported is how many problems of each rule an error has.
const reported = 100

// A catalog with very many problems is refused with the first ones of each rule. The others are counted and passed to
// Omitted.
func TestManyProblems(t *testing.T) {
	const repeated = 5000
	var b strings.Builder
	b.WriteString(
		"schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: c\npackage: a\nentries:\n- " +
			"name: a.v1\n")
	for range repeated {
		b.WriteString("- name: a.v1\n")
	}
	for i := range repeated {
		fmt.Fprintf(&b, "---\nschema: olm.channel\nname: c%d\npackage: nosuch\n", i)
	}
	var omitted []declcfg.Problem
	_, err := declcfg.ValidateFS(context.Background(), fstest.MapFS{"c.yaml": {Data: []byte(b.String())}},
		declcfg.LoadOptions{Omitted: func(p declcfg.Problem) { omitted = append(omitted, p) }})
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	want := map[string]int{declcfg.RuleDuplicate: repeated, declcfg.RuleUnknownPackage: repeated,
		declcfg.RuleEntryBundle: 1}
	for _, p := range append(invalid.Problems, omitted...) {
		want[p.Rule]--
		if p.Message == "" || p.Position.Line == 0 {
			t.Fatalf("%+v", p)
		}
	}
	for rule, n := range want {
		if n != 0 {
			t.Errorf("%d problems of the kind %s are missing", n, rule)
		}
	}
	const more = repeated - reported
	if invalid.More[declcfg.RuleDuplicate] != more || len(omitted) != 2*more {
		t.Errorf("%v, %d omitted", invalid.More, len(omitted))
	}
	if text := err.Error(); len(text) > 64<<10 || !strings.Contains(text,
		fmt.Sprintf("... and %d more problems of the kind \"duplicate\"", more)) {
		t.Errorf("an error of %d bytes: %.300s ... %s", len(text), text, text[max(0, len(text)-300):])
	}
	joined := declcfg.ProblemsOf(errors.Join(err, fmt.Errorf("again: %w", err)))
	if joined.More[declcfg.RuleDuplicate] != repeated+more || len(joined.Problems) > 3*reported {
		t.Errorf("joined: %v, %d kept", joined.More, len(joined.Problems))
	}
}

// Undecodable files are counted too.
func TestManyBrokenFiles(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 500 {
		fsys[fmt.Sprintf("%03d.yaml", i)] = &fstest.MapFile{Data: []byte("[")}
	}
	_, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	var invalid *declcfg.ValidationError
	if !errors.As(err, &invalid) || len(invalid.Problems) != reported ||
		invalid.More[declcfg.RuleSyntax] != 400 {
		t.Errorf("%.300v", err)
	}
}

// Quoted text of the catalog is shortened in all messages.
func TestLongTextInProblems(t *testing.T) {
	long := strings.Repeat("x", 400<<10)
	entries := make([]string, 5000)
	for i := range entries {
		entries[i] = fmt.Sprintf("{name: head-%d}", i)
	}
	for name, text := range map[string]string{
		"package": "schema: olm.package\nname: " + long + "\n",
		"channel": "schema: olm.channel\nname: " + long + "\npackage: b\n",
		"entry": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: " +
			"c\npackage: a\nentries: [{name: " + long + "}]\n",
		"heads": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: " +
			"c\npackage: a\nentries: [" + strings.Join(entries, ", ") + "]\n",
		"skipRange": "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\nname: " +
			"c\npackage: a\nentries: [{name: b, skipRange: " + long + "}]\n",
		"image": "schema: olm.package\nname: a\n---\nschema: olm.bundle\nname: a.v1\npackage: a\nimage: '@" +
			long + "'\nproperties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]\n",
		"related image": "schema: olm.package\nname: a\n---\nschema: olm.bundle\nname: a.v1\npackage: " +
			"a\nrelatedImages: [{image: '@" + long +
			"'}]\nproperties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]\n",
		"version": "schema: olm.package\nname: a\n---\nschema: olm.bundle\nname: a.v1\npackage: a\nproperties: " +
			"[{type: olm.package, value: {packageName: a, version: " + long + "}}]\n",
		"property": "schema: olm.package\nname: a\n---\nschema: olm.bundle\nname: a.v1\npackage: a\nproperties: " +
			"[{type: olm.gvk, value: " + long + "}]\n",
		"deprecation": "schema: olm.package\nname: a\n---\nschema: olm.deprecations\npackage: a\nentries: " +
			"[{message: m, reference: {schema: olm.bundle, name: " + long + "}}]\n",
		"reference": "schema: olm.package\nname: a\n---\nschema: olm.deprecations\npackage: a\nentries: " +
			"[{message: m, reference: {schema: " + long + "}}]\n",
		"syntax": "schema: olm.channel\nname: " + long + "\nentries: 5\n",
		"object": "schema: [" + long + "]\n",
	} {
		_, err := declcfg.ValidateFS(context.Background(), fstest.MapFS{"c.yaml": {Data: []byte(text)}},
			declcfg.LoadOptions{})
		var invalid *declcfg.ValidationError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := len(err.Error()); n > 48<<10 {
			t.Errorf("%s: an error of %d bytes", name, n)
		}
		if n := len(invalid.OpmMessage()); n > 48<<10 {
			t.Errorf("%s: opm's message has %d bytes", name, n)
		}
	}
}
