// Package version says which build a program is.
package version

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
)

// Release is the version of the source.
const Release = "v0.1.0"

// Compatible is the version of opm whose commands, flags and formats the program has. Scripts that ask opm for its version
// decide by it what they can ask for.
const Compatible = "v1.72.0"

// commit and date are set by the linker (-X), from the repository that the program was built in; the date is that of the
// commit, so that two builds of one commit are the same.
var commit, date string

// Info is the answer to "which build is this".
type Info struct {
	Version string `json:"version"`
	// Opm is [Compatible].
	Opm    string `json:"opmVersion"`
	Commit string `json:"commit"`
	Date   string `json:"date"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
}

// Get returns what is known about the running program.
func Get() Info {
	return Info{Version: Release, Opm: Compatible, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
}

// String is the one line that "bindery version" prints.
func (i Info) String() string {
	commit := i.Commit
	commit = cmp.Or(commit, "unknown commit")
	if i.Date != "" {
		commit += " of " + i.Date
	}
	return fmt.Sprintf("bindery %s (%s, %s, %s/%s)", i.Version, commit, i.Go, i.OS, i.Arch)
}

// OPM is the line that "opm version" prints, with the program's own version as its last field. Programs around opm parse
// OpmVersion, so that field holds the version of opm that the program is compatible with.
func (i Info) OPM() string {
	return fmt.Sprintf("Version: version.Version{OpmVersion:%q, GitCommit:%q, BuildDate:%q, GoOs:%q, GoArch:%q, Bindery:%q}",
		i.Opm, i.Commit, i.Date, i.OS, i.Arch, i.Version)
}

// Program tells the running program apart from all others: what another one has found to be valid, this one need not. Programs
// that were built from the same commit, or from none, are distinguished by their files. It is empty if the file is not known.
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
	return fmt.Sprintf("%s %s %s %s/%s %d %d", v.Version, v.Commit, v.Go, v.OS, v.Arch, info.Size(), info.ModTime().UnixNano())
}
