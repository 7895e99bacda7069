// Package version identifies the build of the program.
package version

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// source is the version of a program that records none.
const source = "v0.1.0"

// Release returns the version of the program: that of the Makefile, else that of the module that "go install" has built,
// else that of the source. It is a function, so that it is not linked into the server of catalog images, which does not
// call it: the digest of an image must not depend on the release that made it.
func Release() string { return cmp.Or(release, recorded(debug.ReadBuildInfo), source) }

// Compatible is the version of opm whose commands, flags and formats the program has. Scripts decide by it which
// features to use.
const Compatible = "v1.73.0"

// release, commit and date are set by the linker (-X). The date is that of the commit, so that two builds of one commit
// are equal.
var release, commit, date string

// recorded returns the version of the main module, or "". Go takes it from the module proxy or from the tags of a clone.
func recorded(read func() (*debug.BuildInfo, bool)) string {
	if info, ok := read(); ok && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return ""
}

// revision returns the commit and its date that Go has recorded in a program built in a clone.
func revision(read func() (*debug.BuildInfo, bool)) (commit, date string) {
	info, ok := read()
	if !ok {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.time":
			date = s.Value
		}
	}
	return commit, date
}

// Info describes the build.
type Info struct {
	Version string `json:"version"`
	// Opm is [Compatible].
	Opm    string `json:"opmVersion"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	// Platform is OS/Arch.
	Platform string `json:"platform"`
}

// Get returns the description of the running program.
func Get() Info {
	i := Info{Version: Release(), Opm: Compatible, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS,
		Arch: runtime.GOARCH, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if i.Commit == "" {
		i.Commit, i.Date = revision(debug.ReadBuildInfo)
	}
	return i
}

// String returns the line that "bindery version" prints.
func (i Info) String() string {
	commit := cmp.Or(i.Commit, "unknown commit")
	if i.Date != "" {
		commit += " of " + i.Date
	}
	return fmt.Sprintf("bindery %s (%s, %s, %s/%s)", i.Version, commit, i.Go, i.OS, i.Arch)
}

// OPM returns the line that "opm version" prints, with the program's own version as an additional last field. Programs
// parse OpmVersion, so that field has the compatible version of opm.
func (i Info) OPM() string {
	return opmLine(i.Commit, i.Date, fmt.Sprintf(", Bindery:%q", i.Version))
}

// ServerOPM returns that line for the server of a catalog image, which does not know the release that it is part of.
func ServerOPM() string { return opmLine("", "", "") }

func opmLine(commit, date, more string) string {
	return fmt.Sprintf("Version: version.Version{OpmVersion:%q, GitCommit:%q, BuildDate:%q, GoOs:%q, GoArch:%q%s}",
		Compatible, commit, date, runtime.GOOS, runtime.GOARCH, more)
}

// Program identifies the running program: results of validation that another program stored are not reused. A program
// without a commit is identified by the digest of its file. It is empty if the file is unknown.
func Program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	v := Get()
	return fmt.Sprintf("%s %s %s %s/%s %d %d", v.Version, v.Commit, v.Go, v.OS, v.Arch, info.Size(),
		info.ModTime().UnixNano())
}
