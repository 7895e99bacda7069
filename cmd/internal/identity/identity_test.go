package identity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/internal/testing/sigstoretest"
)

// tokens makes tokens for tests.
type tokens struct{ *sigstoretest.Sigstore }

func newTokens(t *testing.T) tokens { return tokens{sigstoretest.New(t)} }

// for returns the token of somebody, valid for some time.
func (k tokens) of(name string, valid time.Duration) string {
	return k.TokenUntil(name+"@example.com", "https://issuer.example.com", time.Now().Add(valid))
}

// clean is an environment without tokens, whatever runs the test.
func clean(t *testing.T) {
	t.Helper()
	for _, name := range []string{secret.TokenVariable, githubURL, secret.GitHubVariable, "GITHUB_ACTIONS"} {
		t.Setenv(name, "")
	}
}

// taken takes the secrets from the environment, as the program does at its start.
func taken(token string) secret.Environment {
	return secret.TakeEnvironment([]string{"--identity-token", token},
		[]cli.Flag{&cli.StringFlag{Name: "identity-token", Usage: secret.InVariable}})
}

// noSecret fails if an error has a part of a token in its text or hint.
func noSecret(t *testing.T, err error, secrets ...string) {
	t.Helper()
	text := err.Error()
	var e *cmdline.Error
	if errors.As(err, &e) {
		text += e.Hint
	}
	for _, s := range secrets {
		for _, part := range strings.Split(s, ".") {
			if part != "" && strings.Contains(text, part) {
				t.Errorf("the error has a secret: %s", text)
			}
		}
	}
}

// The token is from the first place that has one, and variables with one do not stay.
func TestFind(t *testing.T) {
	k := newTokens(t)
	given, variable, mount := k.of("given", time.Hour), k.of("variable", time.Hour), k.of("mount", time.Hour)
	expired := k.of("expired", -time.Hour)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ok, none := file("ok", given+"\n"), filepath.Join(dir, "none")
	for _, c := range []struct {
		rule         string
		token        string
		env          map[string]string
		mounted      string
		terminal     bool
		name, want   string // the token
		message, why string // or the error and the end of its hint
	}{
		{rule: "a file", token: ok, env: map[string]string{secret.TokenVariable: variable}, name: "--identity-token " + ok,
			want: given},
		{rule: "a variable", token: "env://THE_TOKEN", env: map[string]string{"THE_TOKEN": " " + given + "\r\n"},
			name: "--identity-token env://THE_TOKEN", want: given},
		{rule: "the variable of cosign", env: map[string]string{secret.TokenVariable: variable,
			githubURL: "https://github.example.com", secret.GitHubVariable: "bearer"}, mounted: file("below", mount),
			name: "$" + secret.TokenVariable, want: variable},
		{rule: "GitHub before the mounted file", env: map[string]string{githubURL: "https://github.example.com?a=b",
			secret.GitHubVariable: "bearer"}, mounted: ok, name: "GitHub Actions"},
		{rule: "the mounted file before a login", mounted: file("mounted", mount), terminal: true,
			name: filepath.Join(dir, "mounted"), want: mount},
		{rule: "a login", mounted: none, terminal: true, name: "the issuer oauth2.sigstore.dev"},
		{rule: "nothing", mounted: none, message: "there is no identity token", why: "on a terminal you can log in"},
		{rule: "nothing, with a half of what GitHub gives", mounted: none,
			env: map[string]string{githubURL: "https://github.example.com"}, message: "there is no identity token"},
		{rule: "a job without the permission", mounted: none, env: map[string]string{"GITHUB_ACTIONS": "true"},
			message: "there is no identity token", why: "name a token with --identity-token"},
		{rule: "an unset variable", token: "env://NOT_SET", message: "the environment variable NOT_SET is not set"},
		{rule: "an empty variable", token: "env://EMPTY", env: map[string]string{"EMPTY": ""}, message: "is empty"},
		{rule: "a token itself", token: given, message: "has a token itself", why: "env://VARIABLE or fd:N"},
		{rule: "a file, beside variables with secrets", token: ok, env: map[string]string{secret.TokenVariable: variable,
			secret.GitHubVariable: "bearer"}, name: "--identity-token " + ok, want: given},
		{rule: "a variable, beside others", token: "env://" + secret.TokenVariable, env: map[string]string{secret.TokenVariable: variable,
			secret.GitHubVariable: "bearer"}, name: "--identity-token env://" + secret.TokenVariable, want: variable},
		{rule: "no file", token: none, message: "--identity-token " + none + ": "},
		{rule: "a directory", token: dir, message: "--identity-token " + dir + ": "},
		{rule: "no descriptor", token: "fd:x", message: "expected fd:N"},
		{rule: "a large file", token: file("large", strings.Repeat("a", 64<<10+1)), message: "longer than 65536 bytes"},
		{rule: "an expired token", token: file("expired", expired), message: "expired at 20",
			why: "check this machine's clock"},
		{rule: "an expired variable, whatever else there is", env: map[string]string{secret.TokenVariable: expired}, mounted: ok,
			message: "the identity token of $SIGSTORE_ID_TOKEN expired at 20"},
		{rule: "a mounted file that is no token", mounted: file("bad", "no token"), terminal: true, message: "is no JWT"},
		{rule: "GitHub in the clear", env: map[string]string{githubURL: "http://github.example.com/?s=" + given,
			secret.GitHubVariable: "bearer"}, message: "is not encrypted"},
		{rule: "GitHub at no URL", env: map[string]string{githubURL: "https://" + given + "%zz/", secret.GitHubVariable: "bearer"},
			message: "$ACTIONS_ID_TOKEN_REQUEST_URL: invalid: it is no URL"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			clean(t)
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			s, err := Options{Token: c.token, Terminal: c.terminal, mounted: c.mounted, Secrets: taken(c.token)}.Find(t.Context())
			if c.message != "" {
				if err == nil || !strings.Contains(err.Error(), c.message) {
					t.Fatal(err)
				}
				var e *cmdline.Error
				if c.why != "" && (!errors.As(err, &e) || !strings.HasSuffix(e.Hint, c.why)) {
					t.Errorf("hint: %v", e)
				}
				noSecret(t, err, given, expired)
			} else if err != nil || s.Name != c.name {
				t.Fatal(s, err)
			}
			if c.want != "" {
				for range 2 {
					if got, err := s.Token(t.Context()); err != nil || got != c.want {
						t.Error(got, err)
					}
				}
			}
			read := []string{secret.TokenVariable, secret.GitHubVariable}
			if variable, ok := strings.CutPrefix(c.token, "env://"); ok {
				read = append(read, variable)
			}
			for _, name := range read {
				if os.Getenv(name) != "" {
					t.Errorf("$%s is still set", name)
				}
			}
		})
	}
}

// What is no token is refused without showing it.
func TestNoToken(t *testing.T) {
	good := newTokens(t).of("jane", time.Hour)
	parts := strings.Split(good, ".")
	for rule, text := range map[string]string{
		"one word":       "c2VjcmV0",
		"two parts":      parts[0] + "." + parts[1],
		"four parts":     good + "." + parts[2],
		"no base64":      parts[0] + "." + parts[1] + ".!!!",
		"a line end":     parts[0] + "." + parts[1] + ".\n" + parts[2],
		"claims, a text": parts[0] + ".InNlY3JldCI." + parts[2],
		"no header":      "c2VjcmV0." + parts[1] + "." + parts[2],
		"exp is a text":  parts[0] + ".eyJleHAiOiJzZWNyZXQifQ." + parts[2],
	} {
		if _, err := static("it", text); err == nil || !strings.Contains(err.Error(), "of it is no JWT") {
			t.Errorf("%s: %v", rule, err)
		} else {
			noSecret(t, err, text)
		}
	}
	for rule, claims := range map[string]string{"no expiry": "e30", "an expiry that is none": "eyJleHAiOjFlMzAwfQ"} {
		s, err := static("it", parts[0]+"."+claims+"."+parts[2])
		if err != nil {
			t.Errorf("%s: %v", rule, err)
		} else if _, err := s.Token(t.Context()); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// A token that there is once is refused when it has expired; a file is read again before.
func TestExpiry(t *testing.T) {
	k := newTokens(t)
	once, err := static("it", k.of("jane", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	once.ends = time.Now().Add(-time.Second)
	if _, err := once.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, second := k.of("first", nearEnd/2), k.of("second", time.Hour)
	write(first)
	s, err := Options{Token: file}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Token(t.Context()); err != nil || got != first {
		t.Error("near its end a token is still valid:", got, err)
	}
	write(second)
	if got, err := s.Token(t.Context()); err != nil || got != second {
		t.Error(got, err)
	}
	write("a third one, which is not read")
	if got, err := s.Token(t.Context()); err != nil || got != second {
		t.Error(got, err)
	}
	s.ends = time.Now()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Token(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
