package versions

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
)

// probes are versions at, between and beyond those that ranges of the tests have.
var probes = func() []semver.Version {
	var out []semver.Version
	for _, text := range strings.Fields("0.0.0-0 0.0.0-a 0.0.0 0.0.1 0.1.0 0.9.9 1.0.0-0 1.0.0-a 1.0.0-a.0 1.0.0-a.1 " +
		"1.0.0-b 1.0.0-next 1.0.0-x 1.0.0 1.0.0+b 1.0.1-0 1.0.1 1.1.0-rc 1.1.0 1.2.0 1.2.3 1.3.0 1.9.9 2.0.0-0 2.0.0-a 2.0.0 " +
		"2.0.1 2.2.2 3.0.0 4.2.1 10.0.0 18446744073709551615.18446744073709551615.18446744073709551615") {
		out = append(out, semver.MustParse(text))
	}
	return out
}()

// compare fails if a range has other versions, or another error, than blang/semver's has.
func compare(t *testing.T, text string) {
	t.Helper()
	got, err := ParseRange(text)
	if errors.Is(err, ErrLong) && len(text) > MaxRange {
		return
	}
	want, wantErr := semver.ParseRange(text)
	if errors.Is(err, errEmpty) {
		if wantErr != nil {
			t.Fatalf("%q: %v, blang/semver says %v", text, err, wantErr)
		}
		return
	}
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%q: %v, blang/semver says %v", text, err, wantErr)
	}
	if err != nil {
		return
	}
	sorted := Sort(probes)
	matches := sorted.In(got)
	var in []int
	for i, v := range probes {
		if got.Contains(v) != want(v) || matches.Has(i) != want(v) {
			t.Fatalf("%q: %s: contains %v, matches %v, blang/semver says %v", text, v, got.Contains(v), matches.Has(i), want(v))
		}
		if want(v) {
			in = append(in, i)
		}
	}
	if all := slices.Collect(matches.All()); !slices.Equal(all, in) {
		t.Fatalf("%q: %v match, want %v", text, all, in)
	}
}

// ranges are valid ones and invalid ones with the quirks of blang/semver.
var ranges = []string{
	"", " ", "5", "1", "||", "|| 1.0.0", "1.0.0 ||", "1.0.0 || || 2.0.0", "<1.0.0 || || >2.0.0", "<1.0.0||>2.0.0", "1.0.0 | 2.0.0",
	"1.0.0", "=1.0.0", "==1.0.0", "===1.0.0", "!1.0.0", "!=1.0.0", "<1.0.0", "<=1.0.0", ">1.0.0", ">=1.0.0", "> = 1.0.0", ">  1.0.0",
	"! 1.0.0", "=>1.0.0", "~1.0.0", "^1.0.0", "v1.0.0", "1.0", "1", ">1.0.0 <2.0.0", ">1.0.0 <2.0.0 !1.2.3", ">2.0.0 <1.0.0",
	"<1.0.0 || >2.0.0", "<2.0.0 || >1.0.0", "<1.0.0 || 1.0.0 || >1.0.0", "!1.0.0 !2.0.0 !1.0.0", "!1.0.0 || !2.0.0", "1.0.0 2.0.0",
	">1.0.0 <2.0.0 || >3.0.0 !4.2.1", "1.x", "1.x.x", "1.0.x", "1.2.x", ">1.x", ">=1.x", "<1.x", "<=1.x", "!1.x", "!=1.2.x", "<=1.2.x",
	">1.2.x", "~1.x", "^1.2.x", "abc1.x", "x", "1.x.x.x", "1.x.2", "1..x", "1.x-a", ">=1.0.0-x", ">1.0.0-x", "1.0.0-next",
	">=1.0.0-next <2.0.0-x", "1.-1.x", "9223372036854775807.x", "99999999999999999999.x", "1.9223372036854775807.x",
	">=1.0.0-0 <1.0.0-b", "!0.0.0-0", ">0.0.0-0", "<0.0.0-0", ">=0.0.0-0", "a >=1.0.0", ">=1.0.0 b <2.0.0", "1.0.0+build", "<1.0.0+a >0.9.9+b",
	"<=18446744073709551615.18446744073709551615.18446744073709551615", "18446744073709551616.0.0", "01.0.0", "1.0.0-01", "1.0.0-",
	"\t1.0.0", "1.0.0\n", "٣.x", "٣.0.0", "1.0.0 ||  || 2", "|||| 1.0.0", "1.0.0 |||| 2.0.0", "1.0.0\x00", "x1.x || ~2.0.x", "1.0.0 x 2.0.0",
	"<1.x || >2.x", ">=1.0.0 <=1.0.0", ">1.0.0 <=1.0.0", ">=1.0.0 <1.0.0",
}

func TestRangesAreThoseOfBlang(t *testing.T) {
	for _, text := range ranges {
		compare(t, text)
	}
}

// Ranges of random parts, which are nearly always valid.
func TestRandomRangesAreThoseOfBlang(t *testing.T) {
	ops := []string{"", "=", "==", "!", "!=", "<", "<=", ">", ">=", "> ", "<= "}
	random := rand.New(rand.NewPCG(1, 2))
	one := func() string {
		v := probes[random.IntN(len(probes))].String()
		if random.IntN(4) == 0 {
			v = []string{"0.x", "1.x", "1.x.x", "1.0.x", "1.2.x", "2.x"}[random.IntN(6)]
		}
		return ops[random.IntN(len(ops))] + v
	}
	valid := 0
	for range 20_000 {
		var parts []string
		for range 1 + random.IntN(6) {
			if len(parts) > 0 && random.IntN(3) == 0 {
				parts = append(parts, "||")
			}
			parts = append(parts, one())
		}
		text := strings.Join(parts, " ")
		compare(t, text)
		if _, err := ParseRange(text); err == nil {
			valid++
		}
	}
	if valid < 10_000 {
		t.Errorf("%d of the ranges are valid", valid)
	}
}

func TestRefusedRanges(t *testing.T) {
	for text, want := range map[string]string{
		"<1.0.0 || || >2.0.0":           "there is no comparison between '||' and '||'",
		strings.Repeat(" ", MaxRange+1): "longer than 4096 bytes",
		"<1.0.0 ||":                     "Last element in range is '||'",
		"|| <1.0.0":                     "First element in range is '||'",
		">1.0.0 || || >01.0.0":          `Could not parse Range ">01.0.0": Could not parse version "01.0.0" in ">01.0.0": Major number must not contain leading zeroes "01"`,
	} {
		if r, err := ParseRange(text); err == nil || err.Error() != want || r.spans != nil {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
}

func TestZeroRangeHasNoVersion(t *testing.T) {
	if i := slices.IndexFunc(probes, Range{}.Contains); i >= 0 {
		t.Error(probes[i])
	}
}

func TestFindAndEqual(t *testing.T) {
	sorted := Sort(probes)
	for i, v := range probes {
		var want []int
		for k, o := range probes {
			if o.Compare(v) == 0 {
				want = append(want, k)
			}
		}
		got := sorted.Equal(i)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s equals %v, want %v", v, got, want)
		}
		if at, ok := sorted.Find(v); !ok || !slices.Contains(want, at) {
			t.Errorf("%s is found at %d, %v", v, at, ok)
		}
	}
	if at, ok := sorted.Find(semver.MustParse("7.7.7")); ok {
		t.Errorf("7.7.7 is found at %d", at)
	}
}

func TestUnion(t *testing.T) {
	parse := func(text string) Range {
		r, err := ParseRange(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	got, want := Union(parse("<1.0.0"), Range{}, parse("1.0.x"), parse(">2.0.0 !3.0.0")), parse("<1.1.0 || >2.0.0 !3.0.0")
	for _, v := range probes {
		if got.Contains(v) != want.Contains(v) {
			t.Errorf("%s: %v", v, got.Contains(v))
		}
	}
}

func FuzzParseRange(f *testing.F) {
	for _, text := range ranges {
		f.Add(text)
	}
	f.Fuzz(compare)
}

// BenchmarkChannel is a channel of 2,000 entries with skipRanges of 4 KB.
func BenchmarkChannel(b *testing.B) {
	const n = 2000
	all := make([]semver.Version, n)
	for i := range all {
		all[i] = semver.Version{Major: 1, Minor: uint64(i)}
	}
	var text strings.Builder
	for i := 0; text.Len() < MaxRange-40; i++ {
		if i > 0 {
			text.WriteString(" || ")
		}
		fmt.Fprintf(&text, ">=1.%d.0 <1.%d.5", 2*i, 2*i)
	}
	for b.Loop() {
		sorted := Sort(all)
		found := 0
		for range n {
			r, err := ParseRange(text.String())
			if err != nil {
				b.Fatal(err)
			}
			for range sorted.In(r).All() {
				found++
			}
		}
		if found == 0 {
			b.Fatal("no version is in the range")
		}
	}
}
