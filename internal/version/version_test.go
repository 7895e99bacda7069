package version

import (
	"runtime/debug"
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
