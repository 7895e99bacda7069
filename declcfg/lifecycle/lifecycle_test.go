package lifecycle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var good = compact(`{"schema":"io.openshift.operators.lifecycles.v1alpha1","package":"demo","versions":[
	{"name":"4.12","phases":[{"name":"Full support","startDate":"2023-01-17","endDate":"2023-08-31"},
		{"name":"Maintenance support","startDate":"2023-09-01","endDate":"2024-07-17","more":1}],
	 "platformCompatibility":[{"name":"openshift","versions":["4.12","4.13"]},{"name":"other","versions":["x"]}]},
	{"name":"4.17","phases":[{"name":"Full support","startDate":"2024-10-01","endDate":"2025-05-25"}],"more":{}}],"more":[]}`)

func compact(text string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		panic(err)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	p, problems := Read([]byte(good))
	if len(problems) > 0 || p.Package != "demo" || len(p.Versions) != 2 {
		t.Fatalf("%+v, %v", p, problems)
	}
	if got := p.Versions[0].OpenShift(); !slices.Equal(got, []string{"4.12", "4.13"}) {
		t.Error(got)
	}
}

func TestProblemsOfBlobs(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no package":        {`"package":"demo",`, ``, `[package] the blob names no package`},
		"a wrong type":      {`"versions":["4.12","4.13"]`, `"versions":["4.12",4.13]`, `[versions 0 platformCompatibility 0 versions 1] `},
		"no list":           {`"phases":[{"name":"Full support","startDate":"2024-10-01","endDate":"2025-05-25"}]`, `"phases":{}`, `[versions 1 phases] `},
		"a patch":           {`"4.17"`, `"4.17.0"`, `[versions 1 name] "4.17.0" is no minor version such as 4.12`},
		"a version twice":   {`"4.17"`, `"4.12"`, `[versions 1 name] the version "4.12" is there twice`},
		"no phases":         {`[{"name":"Full support","startDate":"2024-10-01","endDate":"2025-05-25"}]`, `[]`, `[versions 1 phases] the version "4.17" has no phases`},
		"no date":           {`2024-10-01`, `2024-10-01T00:00:00Z`, `[versions 1 phases 0 startDate] "2024-10-01T00:00:00Z" is not a date such as 2027-01-31`},
		"no day":            {`2025-05-25`, `2025-02-30`, `[versions 1 phases 0 endDate] "2025-02-30" is not a date such as 2027-01-31`},
		"no name":           {`"name":"Maintenance support",`, ``, `[versions 0 phases 1 name] the phase has no name`},
		"an end before":     {`2025-05-25`, `2024-05-25`, `[versions 1 phases 0 endDate] the phase "Full support" ends before it begins`},
		"a gap":             {`2023-09-01`, `2023-09-02`, `[versions 0 phases 1 startDate] the phase "Maintenance support" begins on 2023-09-02, and the one before ends on 2023-08-31: the next day is expected`},
		"an overlap":        {`2023-09-01`, `2023-08-31`, `[versions 0 phases 1 startDate] the phase "Maintenance support" begins on 2023-08-31, and the one before ends on 2023-08-31: the next day is expected`},
		"a wrong OpenShift": {`"4.13"`, `"v4.13"`, `[versions 0 platformCompatibility 0 versions 1] "v4.13" is no minor version such as 4.12`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.old) {
				t.Fatal("not in the blob: " + c.old)
			}
			_, problems := Read([]byte(strings.Replace(good, c.old, c.new, 1)))
			if len(problems) != 1 {
				t.Fatalf("%v", problems)
			}
			if got := fmt.Sprint(problems[0].Path, " ", problems[0].Message); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, problems := Read([]byte(`{"package":"demo"}`)); len(problems) != 1 || problems[0].Message != "there are no versions" {
		t.Error(problems)
	}
	many := strings.Repeat(`{"name":"x"},`, 1000)
	if _, problems := Read([]byte(`{"package":"demo","versions":[` + many[:len(many)-1] + `]}`)); len(problems) != maxProblems {
		t.Error(len(problems))
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, blob []byte) {
		if p, problems := Read(blob); p == nil || len(problems) > maxProblems {
			t.Error(problems)
		}
	})
}
