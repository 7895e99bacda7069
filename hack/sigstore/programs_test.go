package sigstore

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// environment is what programs are run with: nothing of the machine's, and no way to other hosts.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "NO_COLOR=1",
		"HTTP_PROXY=" + outside.URL, "HTTPS_PROXY=" + outside.URL, "NO_PROXY=127.0.0.1,localhost"}
}

// place is a directory in which the program runs, and which it leaves without secrets.
type place struct {
	t   *testing.T
	dir string
	// printed is all that the program has printed here.
	printed bytes.Buffer
	// seen is the number of requests to each server before.
	seen map[*recorder]int
}

// newPlace returns a place. When the test ends, no secret is in it, nor in what was sent to servers that need none.
func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir(), seen: map[*recorder]int{}}
	for _, r := range withoutSecrets() {
		p.seen[r] = r.count()
	}
	was := outside.count()
	t.Cleanup(func() {
		for _, where := range p.searchSecrets() {
			t.Error(where)
		}
		if n := outside.count() - was; n != 0 {
			t.Errorf("%d requests went to other hosts; the last one:\n%.300s", n, outside.requests[len(outside.requests)-1])
		}
	})
	return p
}

// result is how a program ended.
type result struct {
	out, log string
	status   int
}

// options are what a program is run with beside its arguments.
type options struct {
	env   []string
	files []*os.File // descriptors 3 and on
	tty   *os.File
	// through is a command that runs the program.
	through []string
}

// bindery runs the program with all it logs.
func (p *place) bindery(o options, args ...string) result {
	p.t.Helper()
	o.env = append(o.env, "BINDERY_USE_HTTP=true", "BINDERY_NO_PROGRESS=true", "BINDERY_LOG_LEVEL=debug")
	r := p.run(os.Getenv("BINDERY"), o, args...)
	p.printed.WriteString(r.out + "\n" + r.log + "\n")
	if strings.Contains(r.log, "unknown flag") {
		p.t.Fatalf("bindery %s: %s", strings.Join(args, " "), r.log) // else rows that are refused would pass
	}
	return r
}

// does runs the program, which must succeed.
func (p *place) does(args ...string) result {
	p.t.Helper()
	return p.with(options{}, args...)
}

// with runs the program with an environment, which must succeed.
func (p *place) with(o options, args ...string) result {
	p.t.Helper()
	r := p.bindery(o, args...)
	if r.status != 0 {
		p.t.Fatalf("bindery %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.log)
	}
	return r
}

// refuses runs the program, which must end with status 1 and say why.
func (p *place) refuses(why string, args ...string) {
	p.t.Helper()
	r := p.bindery(options{}, args...)
	if r.status != 1 || !strings.Contains(r.log+r.out, why) {
		p.t.Errorf("bindery %s: status %d instead of 1 with %q\n%s%s", strings.Join(args, " "), r.status, why, r.out, r.log)
	}
}

// cosign runs cosign.
func (p *place) cosign(o options, args ...string) result {
	p.t.Helper()
	return p.run(os.Getenv("COSIGN"), o, args...)
}

// cosignDoes runs cosign, which must succeed.
func (p *place) cosignDoes(args ...string) result {
	p.t.Helper()
	r := p.cosign(options{}, args...)
	if r.status != 0 {
		p.t.Fatalf("cosign %s: status %d\n%s%s", strings.Join(args, " "), r.status, r.out, r.log)
	}
	return r
}

// cosignRefuses runs cosign, which must fail and say why.
func (p *place) cosignRefuses(why string, args ...string) {
	p.t.Helper()
	r := p.cosign(options{}, args...)
	if r.status == 0 || !strings.Contains(r.log, why) {
		p.t.Errorf("cosign %s: status %d instead of failure with %q\n%s%s", strings.Join(args, " "), r.status, why, r.out, r.log)
	}
}

func (p *place) run(program string, o options, args ...string) result {
	p.t.Helper()
	command := append(append(slices.Clone(o.through), program), args...)
	c := exec.CommandContext(p.t.Context(), command[0], command[1:]...)
	var out, log strings.Builder
	c.Dir, c.Stdout, c.Stderr, c.ExtraFiles = p.dir, &out, &log, o.files
	if o.tty != nil {
		c.Stdin, c.Stdout, c.Stderr = o.tty, o.tty, o.tty
	}
	c.Env = append(environment(p.dir), o.env...)
	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return result{out.String(), log.String(), c.ProcessState.ExitCode()}
}

// privateKeys are how encodings of private keys begin that Go writes for the kinds of keys that sign.
var privateKeys = func() (out []string) {
	for _, der := range []string{
		"308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420", // PKCS#8, P-256
		"30770201010420",                   // SEC 1, P-256
		"302e020100300506032b657004220420", // PKCS#8, Ed25519
	} {
		b := must(hex.DecodeString(der))
		whole := b[:len(b)/3*3]
		out = append(out, string(b), der, base64.StdEncoding.EncodeToString(whole))
	}
	return append(out, "PRIVATE KEY")
}()

// withoutSecrets are the servers that get no token.
func withoutSecrets() []*recorder {
	return []*recorder{public.rekor, authority.recorder, store, mirror, outside}
}

// searchSecrets says where tokens and private keys are that may not be there.
func (p *place) searchSecrets() (found []string) {
	secrets := append(openid.secrets(), privateKeys...)
	search := func(where string, text []byte) {
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				found = append(found, fmt.Sprintf("a secret (%.20q) is in %s", secret, where))
			}
		}
	}
	search("what the program printed", p.printed.Bytes())
	if err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		search(path, text)
		return err
	}); err != nil {
		found = append(found, err.Error())
	}
	for _, r := range withoutSecrets() {
		r.lock.Lock()
		for _, q := range r.requests[p.seen[r]:] {
			search("a request to "+r.name, q)
		}
		r.lock.Unlock()
	}
	return found
}
