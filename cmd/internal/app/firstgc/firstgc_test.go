package firstgc

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

// The percentage changes at the first collection. Child processes test this, as this process may have collected at any
// time.
func TestFirst(t *testing.T) {
	const as = "BINDERY_TEST_FIRSTGC"
	if how := os.Getenv(as); how != "" {
		if how == "50" {
			Then(50)
		}
		print(percentNow(), " ")
		heap := make([]byte, 32<<20)
		for n := 0; percentNow() == percent && n < 1e6; n++ {
			runtime.GC()
			runtime.Gosched()
		}
		print(percentNow(), "\n")
		runtime.KeepAlive(heap)
		os.Exit(0)
	}
	for _, c := range []struct{ name, how, gogc, want string }{
		{"a percentage", "50", "", "^350 50\n"},
		{"none", "default", "", "^350 100\n"},
		{"what the user says counts", "50", "70", "^70 70\n"},
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
