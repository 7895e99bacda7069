package repository

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestTagsByVersion(t *testing.T) {
	digest := "sha256-" + strings.Repeat("0a", 32)
	want := []string{"v2.0.0", "1.10.0", "v1.10.0", "1.9", "1.9.0-rc1", "build-9", "build-10", "latest", "rc9", "rc010", "rc11",
		"sha256-notone.sig", "x", digest, digest + ".att", digest + ".sig"}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.Sort(got)
	slices.SortStableFunc(got, byVersion)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
