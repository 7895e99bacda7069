package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestRecordedVersion(t *testing.T) {
	for _, test := range []struct{ name, version, want string }{
		{"go install of a tag", "v1.2.3", "v1.2.3"},
		{"go install of a commit", "v0.0.0-20260102030405-abcdef012345", "v0.0.0-20260102030405-abcdef012345"},
		{"without version control", "(devel)", ""},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := func() (*debug.BuildInfo, bool) {
				return &debug.BuildInfo{Main: debug.Module{Version: test.version}}, true
			}
			if got := recorded(read); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := recorded(func() (*debug.BuildInfo, bool) { return nil, false }); got != "" {
		t.Errorf("without a record: %q", got)
	}
}

func TestRevision(t *testing.T) {
	commit, date := revision(func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef0123"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}}, true
	})
	if commit != "0123456789ab" || date != "2026-01-02T03:04:05Z" {
		t.Errorf("got %q, %q", commit, date)
	}
}

// The lines about the build have the version of this program and that of opm that it is compatible with.
func TestLines(t *testing.T) {
	i := Get()
	if i.Version != Release() || i.Opm != Compatible || i.Platform != i.OS+"/"+i.Arch || !strings.HasPrefix(i.Go, "go") {
		t.Errorf("%+v", i)
	}
	i = Info{Version: "v1.2.3", Commit: "abc", Date: "2024-01-02", Go: "go1", OS: "linux", Arch: "amd64"}
	if got, want := i.String(), "bindery v1.2.3 (abc of 2024-01-02, go1, linux/amd64)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	i.Commit, i.Date = "", ""
	if got, want := i.String(), "bindery v1.2.3 (unknown commit, go1, linux/amd64)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := i.OPM(); !strings.HasPrefix(got, `Version: version.Version{OpmVersion:"`+Compatible+`", GitCommit:"", `) ||
		!strings.HasSuffix(got, `, Bindery:"v1.2.3"}`) {
		t.Errorf("%s", got)
	}
	if got := ServerOPM(); strings.Contains(got, "Bindery") || !strings.Contains(got, Compatible) {
		t.Errorf("%s", got)
	}
	first, second := Program(), Program()
	if first == "" || first != second {
		t.Errorf("%q and %q identify no program", first, second)
	}
}
