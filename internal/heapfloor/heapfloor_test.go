package heapfloor

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/metrics"
	"testing"
)

func percentNow() int {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

// The percentage changes with the first collection, and not before. Other processes do it, as collections of this one
// happen when they like.
func TestFirst(t *testing.T) {
	const as = "BINDERY_TEST_HEAPFLOOR"
	if how := os.Getenv(as); how != "" {
		switch how {
		case "once":
			Once(50)
		case "keep":
			Keep(50)
		}
		print(percentNow(), " ")
		heap := make([]byte, 2*floor)
		for n := 0; percentNow() == percent && n < 1e6; n++ {
			runtime.GC()
			runtime.Gosched()
		}
		print(percentNow(), "\n")
		runtime.KeepAlive(heap)
		os.Exit(0)
	}
	for _, c := range []struct{ name, how, gogc, want string }{
		{"a large heap", "keep", "", "^400 50\n"},
		{"a process that runs for long", "once", "", "^400 50\n"},
		{"nobody has said anything", "default", "", "^400 100\n"},
		{"what the user says counts", "keep", "70", "^70 70\n"},
		{"what the user says counts in the long run", "once", "70", "^70 70\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestFirst$")
			cmd.Env = append(os.Environ(), as+"="+c.how, "GOGC="+c.gogc)
			out, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(c.want).Match(out) {
				t.Errorf("%v: %q, want %q", err, out, c.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 400}, {1 << 20, 400}, {4 << 20, 300}, {8 << 20, 100}, {12 << 20, 50}, {16 << 20, 50}, {1 << 30, 50}} {
		if got := next(50, c.live); got != c.want {
			t.Errorf("%d bytes: %d, want %d", c.live, got, c.want)
		}
	}
}
