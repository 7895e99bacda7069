package submission_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/internal/gitrepo"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

const cases = "../../testdata/pipelines/cases.tar.zst"

// recordedCase is a submission with the findings of the pipelines.
type recordedCase struct {
	ID, Kind, Operator, Bundle string
	Catalogs, Waived           []string
	Findings                   []recordedFinding
}

// recordedFinding is a finding of a pipeline. Crash is set if the check raised an exception: there is an error.
type recordedFinding struct{ Suite, Target, Check, Level, Message, Crash string }

// lines decodes the lines of a file.
func lines[T any](t *testing.T, text []byte) (out []T) {
	t.Helper()
	for line := range bytes.Lines(text) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

// repositories returns the files of the recorded cases, by their paths.
func repositories(t *testing.T, files map[string][]byte) map[string]fstest.MapFS {
	t.Helper()
	out := map[string]fstest.MapFS{}
	for name, text := range files {
		name, ok := strings.CutPrefix(name, "cases/")
		if !ok || strings.HasPrefix(name, "pr/") {
			continue
		}
		id, file, _ := strings.Cut(name, "/")
		if out[id] == nil {
			out[id] = fstest.MapFS{}
		}
		out[id][file] = &fstest.MapFile{Data: text}
	}
	return out
}

// checked returns the findings of this program about the operator, the bundle and the catalogs that a request changes.
func checked(t *testing.T, fsys fstest.MapFS, profile rules.Profile, c recordedCase) []rules.Finding {
	t.Helper()
	run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{profile}}, submission.Rules())
	if err != nil {
		t.Fatal(err)
	}
	r := submission.Open(fsys)
	var places []submission.Place
	if c.Bundle != "" {
		places = append(places, submission.Place{Kind: submission.BundleOf, Operator: c.Operator, Bundle: c.Bundle})
	}
	for _, catalog := range c.Catalogs {
		name, operator, _ := strings.Cut(catalog, "/")
		places = append(places, submission.Place{Kind: submission.CatalogOf, Catalog: name, Operator: operator})
	}
	if c.Operator != "" {
		places = append(places, submission.Place{Kind: submission.OperatorOf, Operator: c.Operator})
	}
	for _, p := range places {
		if err := r.Check(t.Context(), run, p, submission.Options{}); err != nil {
			if errors.Is(err, submission.ErrNothing) {
				continue // the request deletes it
			}
			t.Fatalf("%s: %v", c.ID, err)
		}
	}
	targets := []string{"operators/" + c.Operator, "operators/" + c.Operator + "/" + c.Bundle}
	for _, catalog := range c.Catalogs {
		targets = append(targets, "catalogs/"+catalog, path.Dir("catalogs/"+catalog))
	}
	return slices.DeleteFunc(run.Report(c.ID, rules.OnRepository).Findings, func(f rules.Finding) bool {
		return !slices.Contains(targets, f.Target)
	})
}

var suites = map[rules.Profile][]string{
	rules.Community:   {"community", "common", "pipeline"},
	rules.Certified:   {"isv", "common", "pipeline"},
	rules.Marketplace: {"isv", "common", "pipeline"},
}

// sdk is one name for the two runs of operator-sdk.
func sdk(rule string) string {
	if strings.HasPrefix(rule, "check_osdk") {
		return "operator-sdk"
	}
	return rule
}

// differences are the deliberate ones, which docs/guides/check.md has with their reasons: the cases, and what differs in
// them.
var differences = map[string][]string{
	"OpenShift after 4.17 is known":                          {"api-eq-unknown-high"},
	"a reversed range is a warning":                          {"api-range-rev"},
	"fbc is a mapping, and an empty ci.yaml is one error":    {"ci-comment", "ci-fbc-bool", "ci-fbc-enabled-int", "ci-list", "ci-string"},
	"one finding for a file with two documents":              {"csv-multidoc"},
	"an empty document at the end is harmless":               {"csv-multidoc-emptytail"},
	"a value of the wrong kind is as if it were missing":     {"dangle-skips-null", "field-annotations-list", "field-annotations-null"},
	"a number is no text":                                    {"field-displayname-int3", "field-provider-int"},
	"a file is read as opm reads it":                         {"fmt-emptydoc", "obj-nullprops"},
	"updateGraph null is as if it were missing":              {"graph-null"},
	"a range with the bundle itself is a warning":            {"loop-skiprange-self", "skiprange-or"},
	"versions that are not semantic come first":              {"name-csv-dots"},
	"a bundle without a package does not count":              {"name-old-pkg-missing"},
	"ranges are those of OLM":                                {"skiprange-comma", "skiprange-excl", "skiprange-hyphen", "skiprange-star", "skiprange-v"},
	"a default channel that is none of the channels":         {"rcs-default-unlisted"},
	"the bundle is read as opm reads it":                     {"name-pkg-empty", "name-pkg-int", "api-ocp-float", "dangle-channels-float", "dangle-channels-list", "ocp-float"},
	"newer validators: NetworkPolicy, and names of channels": {"np-beta", "np-extensions", "np-noversion", "np-two", "np-v1", "np-yml", "manifest-json", "dangle-channel", "dangle-channels", "dangle-default-only"},
	"the request was for no operator":                        {"no-such-operator"},
}

func TestRecordedCases(t *testing.T) {
	files := recorded.Archive(t, cases)
	repos := repositories(t, files)
	var wrong []string
	differ := slices.Concat(slices.Collect(maps.Values(differences))...)
	for _, c := range lines[recordedCase](t, files["cases.jsonl"]) {
		profile := rules.Profile(c.Kind)
		found, counts := map[string]bool{}, map[string]int{}
		for _, f := range checked(t, repos[c.ID], profile, c) {
			found[fmt.Sprintf("%s %s %s", sdk(f.Rule), f.Target, f.Severity)] = true
			counts[f.Rule]++
		}
		want, crashed := map[string]bool{}, map[string]bool{}
		for _, f := range c.Findings {
			if !slices.Contains(suites[profile], f.Suite) || f.Check == "check_using_fbc" || strings.Contains(f.Message, "validator is deprecated; for") {
				continue
			}
			key := fmt.Sprintf("%s %s %s", sdk(f.Check), target(f, c), f.Level)
			counts[f.Check]--
			if f.Crash != "" {
				crashed[target(f, c)] = true
			} else {
				want[key] = true
			}
		}
		before := len(wrong)
		fail := func(format string, args ...any) { wrong = append(wrong, c.ID+": "+fmt.Sprintf(format, args...)) }
		for target := range crashed {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(k string) bool { return strings.HasSuffix(k, " "+target+" error") }) {
				fail("no error on %s, where the pipeline's check raised an exception", target)
			}
		}
		for _, rule := range []string{"check_schema_operator_ci_config", "check_validate_schema_bundle_release_config"} {
			if n := counts[rule]; n != 0 && len(crashed) == 0 {
				fail("%+d findings of %s", n, rule)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if !found[key] {
				fail("lacking: %s", key)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			parts := strings.Fields(key)
			if !want[key] && !(crashed[parts[1]] && parts[2] == "error") && parts[0] != "check_using_fbc" && !strings.HasPrefix(parts[0], "submission.") {
				fail("beyond: %s", key)
			}
		}
		switch differs := slices.Contains(differ, c.ID); {
		case differs && len(wrong) == before:
			t.Errorf("%s does not differ", c.ID)
		case differs:
			wrong = wrong[:before]
		}
	}
	for _, text := range wrong {
		t.Error(text)
	}
}

// target returns the part that a recorded finding is about.
func target(f recordedFinding, c recordedCase) string {
	if f.Target == "catalogs" && len(c.Catalogs) > 0 {
		for _, catalog := range c.Catalogs {
			if strings.Contains(f.Message, catalog) {
				return "catalogs/" + catalog
			}
		}
		return "catalogs/" + c.Catalogs[0]
	}
	if f.Check == "yaml-lint" {
		return "operators/" + c.Operator + "/" + c.Bundle
	}
	return strings.TrimSuffix(f.Target, "/ci.yaml")
}

func TestRecordedRequests(t *testing.T) {
	files := recorded.Archive(t, cases)
	type recordedRequest struct {
		ID, Path string
		Changed  []string
		Errors   []string
		Detected struct {
			Operator string   `json:"operator_name"`
			Bundle   string   `json:"bundle_version"`
			Catalogs []string `json:"affected_catalogs"`
			Packages []string `json:"affected_catalog_operators"`
		}
	}
	sides := map[string]fstest.MapFS{}
	for name, text := range files {
		name, ok := strings.CutPrefix(name, "cases/pr/")
		if !ok {
			continue
		}
		parts := strings.SplitN(name, "/", 3)
		side := parts[0] + "/" + parts[1]
		if sides[side] == nil {
			sides[side] = fstest.MapFS{}
		}
		sides[side][parts[2]] = &fstest.MapFile{Data: text}
	}
	for _, c := range lines[recordedRequest](t, files["pr.jsonl"]) {
		base, head := sides[c.ID+"/base"], sides[c.ID+"/head"]
		changes, err := gitrepo.Diff(t.Context(), base, head)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		kindless := slices.Clone(changes)
		for i, change := range changes {
			names = append(names, change.Path)
			kindless[i].Kind = gitrepo.Unknown
		}
		if !slices.Equal(names, c.Changed) {
			t.Errorf("%s: changed %q, want %q", c.ID, names, c.Changed)
		}
		for name, request := range map[string]*submission.Request{"base": {Changes: changes, Base: base},
			"kinds": {Changes: changes}, "names": {Changes: kindless}} {
			run, err := rules.NewRun(rules.Options{Profiles: []rules.Profile{rules.Community}}, submission.Rules())
			if err != nil {
				t.Fatal(err)
			}
			if err := submission.Open(head).Check(t.Context(), run, submission.Place{}, submission.Options{Request: request}); err != nil {
				t.Fatal(err)
			}
			report := run.Report("", rules.OnRequest)
			found := 0
			for _, f := range report.Findings {
				if f.Target == "pull request" {
					found++
				}
			}
			if c.ID == "delete-fbc-used-two" && name != "base" && len(report.NotRun) == 1 {
				continue // the name of the bundle is in a file that is deleted
			}
			if found != len(c.Errors) {
				t.Errorf("%s, %s: %d errors, want %q: %v", c.ID, name, found, c.Errors, report.Findings)
			}
			title := ""
			catalogs := "[" + strings.Join(c.Detected.Catalogs, ",") + "]"
			switch d := c.Detected; {
			case d.Bundle != "" && len(d.Catalogs) > 0:
				title = fmt.Sprintf("operator %s (%s) | %s", d.Operator, d.Bundle, catalogs)
			case d.Bundle != "":
				title = fmt.Sprintf("operator %s (%s)", d.Operator, d.Bundle)
			case len(d.Packages) > 0:
				var names []string
				for _, p := range d.Packages {
					names = append(names, path.Base(p))
				}
				title = fmt.Sprintf("Catalog update [%s] %s", strings.Join(names, ","), catalogs)
			}
			if report.Title != title {
				t.Errorf("%s: the title is %q, want %q", c.ID, report.Title, title)
			}
		}
	}
}
