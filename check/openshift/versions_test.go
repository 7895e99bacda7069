package openshift

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Version{"4.17": {4, 17}, "v4.17": {4, 17}, "v4.17.0": {4, 17}, "4.1": {4, 1},
		"4.10": {4, 10}, "4.12.33": {4, 12}, "v5.0": {5, 0}} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q): %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "4", "v", "vv4.17", "4.17.", "4.017", "4.1000", "=v4.17", " 4.17", "latest", "4.17-rc.1"} {
		if v, err := Parse(text); err == nil {
			t.Errorf("Parse(%q): %v, no error", text, v)
		}
	}
}

func TestKubernetesOfVersions(t *testing.T) {
	table := NewTable(nil, nil)
	var got []string
	for _, v := range table.Versions() {
		k, _ := table.Kubernetes(v)
		got = append(got, v.String()+"="+k.String())
	}
	want := "4.1=1.13 4.2=1.14 4.3=1.16 4.4=1.17 4.5=1.18 4.6=1.19 4.7=1.20 4.8=1.21 4.9=1.22 4.10=1.23 4.11=1.24 " +
		"4.12=1.25 4.13=1.26 4.14=1.27 4.15=1.28 4.16=1.29 4.17=1.30 4.18=1.31 4.19=1.32 4.20=1.33 4.21=1.34 4.22=1.35"
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
	newer := NewTable(map[Version]Kubernetes{{5, 0}: 36}, map[string][]Version{Community: {{5, 0}, {4, 22}, {5, 0}}})
	if k, ok := newer.Kubernetes(Version{5, 0}); !ok || k != 36 {
		t.Errorf("5.0: %v, %v", k, ok)
	}
	if got := fmt.Sprint(newer.Indices(Community), newer.Indices(Marketplace)[0], newer.Indices("acme")); got != "[4.22 5.0] 4.12 []" {
		t.Error(got)
	}
}

func TestIndicesOfOrganizations(t *testing.T) {
	for organization, want := range map[string]string{Community: "4.12 to 4.22", Certified: "4.12 to 4.22",
		Marketplace: "4.12 to 4.21"} {
		all := NewTable(nil, nil).Indices(organization)
		if got := fmt.Sprintf("%s to %s", all[0], all[len(all)-1]); got != want || !slices.IsSortedFunc(all, Version.Compare) {
			t.Errorf("%s: %s", organization, got)
		}
	}
}

func TestSelect(t *testing.T) {
	indices := minors(4, 8)
	for text, want := range map[string]string{
		"":               "4.4 4.5 4.6 4.7 4.8",
		"v4.6":           "4.6 4.7 4.8",
		"4.6":            "4.6 4.7 4.8",
		" v4.6 ":         "4.6 4.7 4.8",
		"v4.1":           "4.4 4.5 4.6 4.7 4.8",
		"v4.9":           "",
		"=v4.6":          "4.6",
		"=4.6":           "4.6",
		"=v4.9":          "",
		"v4.5-v4.7":      "4.5 4.6 4.7",
		"4.5-4.7":        "4.5 4.6 4.7",
		"v4.7-v4.5":      "",
		"v4.5,v4.6":      "4.5 4.6 4.7 4.8",
		"v4.6,v4.5":      "4.5 4.6 4.7 4.8",
		"v4.8,v4.7,v4.6": "4.6 4.7 4.8",
	} {
		got, err := Select(text, indices)
		if s := strings.Trim(fmt.Sprint(got), "[]"); err != nil || s != want {
			t.Errorf("Select(%q): %s, %v, want %s", text, s, err, want)
		}
	}
	for _, text := range []string{"latest", "v4", "v4.6.1", "=v4.5-v4.7", "v4.5-", "-v4.5", "v4.5,", ",", "=", "-", "v4.5-v4.6-v4.7",
		">=v4.5", "v4.5 - v4.6", "v4.5, v4.6", "=v4.5,v4.6", "v4.5,v4.6-v4.7", "==v4.5", "v4.5-v4.6,v4.7"} {
		if got, err := Select(text, indices); err == nil {
			t.Errorf("Select(%q): %v, no error", text, got)
		}
	}
}

func FuzzSelect(f *testing.F) {
	for _, seed := range []string{"", "v4.12", "=v4.12", "v4.12-v4.14", "v4.5,v4.6", "latest"} {
		f.Add(seed)
	}
	indices := minors(12, 22)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Select(text, indices)
		if err != nil && got != nil {
			t.Error("versions beside an error")
		}
		if !slices.IsSortedFunc(got, Version.Compare) || len(got) > len(indices) {
			t.Error(got)
		}
	})
}
