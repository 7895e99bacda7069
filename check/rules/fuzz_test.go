package rules_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/declcfg"
)

// No file of waivers makes it panic, and what is accepted has rules, reasons and dates.
func FuzzWaivers(f *testing.F) {
	for _, text := range []string{"waivers: [{rule: a, reason: b, until: 2027-01-31, bundle: 'x*'}]",
		"waivers: [&a {rule: a}, *a, {<<: *a}]", "waivers: &a [*a]", "waivers: [[a], 1, null]", "- a",
		"waivers: [{rule: olmv1.version, reason: b, until: 2027-02-31, file: '['}]", "a: b: c", "waivers: {a: 1}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		w, err := rules.ReadWaivers(strings.NewReader(string(text)), "waivers.yaml")
		if err != nil {
			if len(err.Error()) > 1<<20 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		o := rules.Options{Profiles: every, Waivers: w, Now: time.Unix(1e9, 0)}
		if r, err := rules.NewRun(o, rules.CatalogRules()); err == nil {
			r.Report("x", rules.OnCatalog)
		}
	})
}

// No rule data makes it panic.
func FuzzData(f *testing.F) {
	for _, text := range []string{"rule_data: {allowed_olm_resource_kinds: [a]}", "rule_data: 5", "fbc_x: 1",
		"required_labels: [{name: a, values: [b]}, null]", "a: &a [*a]", "- a", "required_labels: {a: b}",
		"allowed_registry_prefixes: ~"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := rules.ReadData(strings.NewReader(string(text)), "data.yaml")
		if err != nil {
			return
		}
		r, err := rules.NewRun(rules.Options{Profiles: every, Data: d}, rules.CatalogRules())
		if err != nil {
			t.Fatal(err)
		}
		s := subject()
		if err := r.CheckCatalog(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}

// No catalog makes the rules panic, and the same catalog is always answered in the same way.
func FuzzCatalog(f *testing.F) {
	f.Add([]byte(good))
	for _, text := range []string{"schema: olm.bundle\nname: a\npackage: p\nproperties: [null, {type: a}]",
		`{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"a","replaces":"a","skips":["a"]}]}`,
		`{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"olm.csv.metadata","value":7}]}`,
		`{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle"}}]}`,
		"schema: olm.package\nname: ''\nicon: 1", "a: &a [*a]", "{}\n---\n[]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var before string
		for range 2 {
			r, err := rules.NewRun(rules.Options{Profiles: append(every, rules.Community)}, rules.CatalogRules())
			if err != nil {
				t.Fatal(err)
			}
			s := subject()
			s.FS, s.Load = fstest.MapFS{"a/catalog.yaml": {Data: text}}, declcfg.LoadOptions{Jobs: 1}
			if err := r.CheckCatalog(t.Context(), s); errors.Is(err, declcfg.ErrIrregular) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
			report := r.Report("catalog", rules.OnCatalog)
			now, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			if before != "" && before != string(now) {
				t.Errorf("another answer:\n%s\n%s", before, now)
			}
			before = string(now)
			report.Channels()
			if err := report.WriteJUnit(io.Discard, rules.Error); err != nil {
				t.Error(err)
			}
			if err := report.WriteSARIF(io.Discard, "v1"); err != nil {
				t.Error(err)
			}
		}
	})
}
