package sigstore

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// signed asks that an image is signed by somebody, for the program and for cosign.
func (p *place) signed(image, root string, who []string) {
	p.t.Helper()
	p.does(binderyVerify(image, root, who)...)
	p.cosignDoes(cosignVerify("verify", image, root, who)...)
}

// What cosign has signed and attested the program verifies.
func TestCosignSigns(t *testing.T) {
	p := newPlace(t)
	image := p.newImage("cosign/catalog")
	token := openid.person(person)
	predicate := filepath.Join(t.TempDir(), "predicate.json")
	if err := os.WriteFile(predicate, []byte(`{"tested": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p.refuses("", binderyVerify(image, public.root, byPerson())...)
	p.cosignDoes(cosignSign("attest", image, token, "--predicate", predicate, "--type", "https://example.com/tested/v1")...)
	// An attestation is no signature, and one of another type none of this.
	p.refuses("", binderyVerify(image, public.root, byPerson())...)
	p.does(binderyVerify(image, public.root, byPerson(), "--type", "https://example.com/tested/v1")...)
	p.refuses("", binderyVerify(image, public.root, byPerson(), "--type", "https://example.com/tested/v2")...)
	p.refuses("", binderyVerify(image, public.root, byJob(), "--type", "https://example.com/tested/v1")...)
	p.cosignDoes(cosignSign("sign", image, token)...)
	p.does(binderyVerify(image, public.root, byPerson())...)
	p.refusesAll(image, byPerson())
	// Without a root there is nothing to verify with, and no server is asked for one.
	p.refuses("", append([]string{"verify", image, "--offline"}, byPerson()...)...)
	if r := p.does("tree", image, "--trusted-root", public.root, "--offline", "--certificate-identity", person, "--certificate-oidc-issuer", openid.URL); !strings.Contains(r.out, person) {
		t.Errorf("the tree does not say who has signed:\n%s", r.out)
	}
	// It is so with a tag in place of the referrers API.
	copied := mirror.host() + "/cosign/catalog:v1"
	p.does("copy", image, copied)
	p.signed(copied, public.root, byPerson())
}

// Tokens come from each of the places that the documentation names.
func TestTokens(t *testing.T) {
	token := func(t *testing.T, text string) string {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, row := range map[string]struct {
		args func(t *testing.T, o *options) []string
		who  []string
	}{
		"file": {func(t *testing.T, _ *options) []string {
			return []string{"--identity-token", token(t, openid.person(person)+"\n")}
		}, byPerson()},
		"variable": {func(_ *testing.T, o *options) []string {
			o.env = []string{"MY_TOKEN=" + openid.person(person)}
			return []string{"--identity-token", "env://MY_TOKEN"}
		}, byPerson()},
		"descriptor": {func(t *testing.T, o *options) []string {
			f, err := os.Open(token(t, openid.person(person)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			o.files = []*os.File{f}
			return []string{"--identity-token", "fd:3"}
		}, byPerson()},
		"SIGSTORE_ID_TOKEN": {func(_ *testing.T, o *options) []string {
			// It comes before the token of the job.
			o.env = append(openid.jobEnvironment(), "SIGSTORE_ID_TOKEN="+openid.person(person))
			return nil
		}, byPerson()},
		"job": {func(_ *testing.T, o *options) []string {
			o.env = openid.jobEnvironment()
			return nil
		}, byJob()},
		"projected": {func(t *testing.T, o *options) []string {
			// A pod of Kubernetes has the token in a file with a name that does not change: here in a namespace of mounts.
			if text, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
				t.Skipf("there are no namespaces of mounts: %v %s", err, text)
			}
			o.through = []string{"unshare", "-rm", "sh", "-c", `mount -t tmpfs none /var/run && mkdir -p /var/run/sigstore/cosign &&
				cp "$0" /var/run/sigstore/cosign/oidc-token && exec "$@"`, token(t, openid.person(person))}
			return nil
		}, byPerson()},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			image := p.newImage("tokens/" + strings.ToLower(name))
			o := options{}
			args := append([]string{"sign", image, "--sign-keyless", "--signing-config", public.config}, row.args(t, &o)...)
			p.with(o, args...)
			p.signed(image, public.root, row.who)
		})
	}
}

// Without a token nothing is signed, nor with one that is not for Sigstore, has expired, or is not the issuer's.
func TestNoToken(t *testing.T) {
	old := openid.mint(map[string]any{"sub": "s", "email": person, "email_verified": true, "exp": 1})
	other, err := newIssuer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	forged := other.mint(map[string]any{"iss": openid.URL, "sub": "s", "email": person, "email_verified": true})
	for name, o := range map[string]options{
		"none":                {},
		"of another audience": {env: []string{"SIGSTORE_ID_TOKEN=" + openid.mint(map[string]any{"aud": "other", "sub": "s", "email": person, "email_verified": true})}},
		"expired":             {env: []string{"SIGSTORE_ID_TOKEN=" + old}},
		"forged":              {env: []string{"SIGSTORE_ID_TOKEN=" + forged}},
		"of no issuer":        {env: []string{"SIGSTORE_ID_TOKEN=" + other.person(person)}},
		"no token":            {env: []string{"SIGSTORE_ID_TOKEN=this is no token"}},
		"of a job without the permission": {env: []string{"GITHUB_ACTIONS=true", "ACTIONS_ID_TOKEN_REQUEST_URL=" + openid.jobs() + "/token?api-version=2.0",
			"ACTIONS_ID_TOKEN_REQUEST_TOKEN=wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			image := p.newImage("none/" + strings.ReplaceAll(name, " ", "-"))
			logged := public.rekor.count()
			if r := p.bindery(o, "sign", image, "--sign-keyless", "--signing-config", public.config); r.status == 0 {
				t.Errorf("it is signed:\n%s%s", r.out, r.log)
			} else {
				t.Logf("%s", r.log)
			}
			if n := public.rekor.count(); n != logged {
				t.Error("the log was asked")
			}
			if all := referrers(t, image); len(all) != 0 {
				t.Errorf("on the image hang %v", all)
			}
		})
	}
}

// On a terminal a person is shown a code to type.
func TestDevice(t *testing.T) {
	p := newPlace(t)
	image := p.newImage("device/catalog")
	controller, terminal := openTerminal(t)
	shown := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(controller); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
		}
		shown <- all.String()
	}()
	r := p.bindery(options{tty: terminal}, "sign", image, "--sign-keyless", "--signing-config", public.config, "--oidc-issuer", openid.URL, "--oidc-client-id", "sigstore")
	terminal.Close()
	text := <-shown
	p.printed.WriteString(text)
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, text)
	}
	if !strings.Contains(text, userCode) || !strings.Contains(text, openid.URL+"/device") {
		t.Errorf("the code and where to type it are not in %q", text)
	}
	p.signed(image, public.root, byPerson())
}

// openTerminal returns the two ends of a terminal.
func openTerminal(t *testing.T) (controller, terminal *os.File) {
	t.Helper()
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { controller.Close() })
	number, err := unix.IoctlGetInt(int(controller.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(controller.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return controller, terminal
}

// A private instance is named by flags, without a signing configuration.
func TestFlags(t *testing.T) {
	timed := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := makeRoot(timed, public.ofFulcio(), ofAuthority()); err != nil {
		t.Fatal(err)
	}
	t.Run("all", func(t *testing.T) {
		p := newPlace(t)
		image := p.newImage("flags/all")
		p.with(options{env: []string{"SIGSTORE_ID_TOKEN=" + openid.person(person)}}, "sign", image, "--sign-keyless", "--fulcio-url", public.fulcio.URL,
			"--rekor-url", public.rekor.URL, "--rekor-version", "2", "--tsa-url", authority.path())
		p.signed(image, public.root, byPerson())
		p.refusesAll(image, byPerson())
	})
	t.Run("no log", func(t *testing.T) {
		p := newPlace(t)
		image := p.newImage("flags/timed")
		logged := public.rekor.count()
		p.with(options{env: []string{"SIGSTORE_ID_TOKEN=" + openid.person(person)}}, "sign", image, "--sign-keyless", "--fulcio-url", public.fulcio.URL,
			"--tsa-url", authority.path())
		if public.rekor.count() != logged {
			t.Error("the log was asked")
		}
		p.does(binderyVerify(image, timed, byPerson())...)
		p.cosignDoes(cosignVerify("verify", image, timed, byPerson(), "--insecure-ignore-tlog")...)
		// Where the root has a log, an entry is asked for.
		p.refuses("", binderyVerify(image, public.root, byPerson())...)
	})
	for name, args := range map[string][]string{
		"plain http elsewhere":      {"--fulcio-url", "http://fulcio.example.com", "--rekor-url", public.rekor.URL, "--rekor-version", "2", "--tsa-url", authority.path()},
		"a .sig tag with this log":  {"--signing-config", public.config, "--sign-format", "both"},
		"a .sig tag without a log":  {"--fulcio-url", public.fulcio.URL, "--tsa-url", authority.path(), "--sign-format", "sig"},
		"a key and an identity":     {"--signing-config", public.config, "--sign-key", "release.key"},
		"a log of another version":  {"--fulcio-url", public.fulcio.URL, "--rekor-url", public.rekor.URL, "--rekor-version", "3", "--tsa-url", authority.path()},
		"a configuration and a URL": {"--signing-config", public.config, "--fulcio-url", public.fulcio.URL},
		"no such configuration":     {"--signing-config", "missing.json"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			image := p.newImage("flags/" + strings.ToLower(strings.NewReplacer(" ", "-", ".", "").Replace(name)))
			asked, logged := public.fulcio.count(), public.rekor.count()
			r := p.bindery(options{env: []string{"SIGSTORE_ID_TOKEN=" + openid.person(person)}}, append([]string{"sign", image, "--sign-keyless"}, args...)...)
			if r.status == 0 {
				t.Errorf("it is signed:\n%s%s", r.out, r.log)
			} else {
				t.Logf("%s", r.log)
			}
			if public.fulcio.count() != asked || public.rekor.count() != logged {
				t.Error("the servers were asked")
			}
			if all := referrers(t, image); len(all) != 0 {
				t.Errorf("on the image hang %v", all)
			}
		})
	}
}
