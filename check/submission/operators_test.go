package submission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// operators has real operators, without the manifests beside ClusterServiceVersions, and what the pipelines said of them.
const operators = "../../testdata/pipelines/operators.tar.zst"

// beyondFiles are the rules on files that the archive does not have, or that were not run for it.
func beyondFiles(rule string) bool {
	return slices.Contains([]string{"yaml-lint", "certification-project-check", "ocp_version_info", "check_using_fbc",
		"check_network_policy_presence"}, rule) || strings.HasPrefix(rule, "check_osdk") || strings.HasPrefix(rule, "submission.")
}

// knownDifferences are those between the pipeline's ranges and OLM's: a range with the bundle itself is a warning.
var knownDifferences = []string{
	"operators/oadp-operator", "operators/special-resource-operator",
}

func TestRecordedOperators(t *testing.T) {
	fsys := fstest.MapFS{}
	files := recorded.Archive(t, operators)
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: text}
	}
	delete(fsys, "config.yaml") // no waiver was applied
	fsys["config.yaml"] = &fstest.MapFile{Data: []byte("organization: community-operators\n")}
	repository := submission.Open(fsys)
	type record struct {
		Path, Kind string
		Findings   []recordedFinding
	}
	checks, compared := 0, map[string]int{}
	reports := map[string][]rules.Finding{} // by the operator
	for _, c := range lines[record](t, files["real.jsonl"]) {
		operator := strings.Split(c.Path, "/")[1]
		if _, ok := reports[operator]; !ok {
			var skip []string
			for _, r := range submission.Rules() {
				if beyondFiles(r.ID) {
					skip = append(skip, r.ID)
				}
			}
			run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.Community, rules.Certified}, Skip: skip},
				submission.Rules())
			if err != nil {
				t.Fatal(err)
			}
			if err := repository.Check(t.Context(), run, submission.Place{Kind: submission.OperatorOf, Operator: operator},
				submission.Options{AllBundles: true}); err != nil {
				t.Fatal(err)
			}
			reports[operator] = run.Report("", rules.OnOperator).Findings
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, f := range reports[operator] {
			if f.Target == c.Path {
				got[fmt.Sprintf("%s %s", f.Rule, f.Severity)] = true
			}
		}
		for _, f := range c.Findings {
			if !beyondFiles(f.Check) {
				want[f.Check+" "+f.Level] = true
				compared[f.Check]++
			}
		}
		if maps.Equal(got, want) == slices.Contains(knownDifferences, c.Path) {
			t.Errorf("%s: %v, want %v", c.Path, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		checks++
	}
	if checks < 300 || len(compared) < 10 {
		t.Errorf("only %d parts and findings of %d rules were compared", checks, len(compared))
	}
}

func BenchmarkOperator(b *testing.B) {
	fsys := fstest.MapFS{}
	bytes := 0
	for name, text := range recorded.Archive(b, operators) {
		if strings.HasPrefix(name, "operators/percona-") || name == "config.yaml" {
			fsys[name] = &fstest.MapFile{Data: text}
			bytes += len(text)
		}
	}
	if len(fsys) < 10 {
		b.Fatal(len(fsys))
	}
	repository := submission.Open(fsys)
	b.SetBytes(int64(bytes))
	for b.Loop() {
		run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.Community}}, submission.Rules())
		if err != nil {
			b.Fatal(err)
		}
		if err := repository.Check(b.Context(), run, submission.Place{Kind: submission.Whole}, submission.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
