// Package identity finds the token of OpenID Connect that says who signs without a key.
package identity

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

const (
	defaultIssuer   = "https://oauth2.sigstore.dev/auth"    // of the public instance
	defaultClientID = "sigstore"                            // there
	audience        = "sigstore"                            // whom a token is for that the program asks for
	mountedToken    = "/var/run/sigstore/cosign/oidc-token" // as cosign has it
	githubURL       = "ACTIONS_ID_TOKEN_REQUEST_URL"        // where a job asks for its token
)

// jwt finds what looks like a token.
var jwt = lazyregexp.New(`eyJ[A-Za-z0-9_-]{8,}\.`)

// Options say where the token is.
type Options struct {
	Token            string       // --identity-token: FILE, env://VARIABLE or fd:N; empty to look for one
	Issuer, ClientID string       // of the device flow; the public instance's if empty
	Terminal         bool         // somebody can log in
	Tell             func(string) // prints a line for them; needed if Terminal
	Secrets          secret.Environment

	mounted string        // in place of mountedToken, in tests
	pause   time.Duration // before GitHub is asked again; a second if 0
}

// Find decides where the token is from: the flag, $SIGSTORE_ID_TOKEN, GitHub, the file that Kubernetes mounts, or the
// device flow. A token in a file, a descriptor or the environment is read and checked at once.
func (o Options) Find(ctx context.Context) (*Source, error) {
	if jwt().MatchString(o.Token) {
		e := cmdline.Usagef("--identity-token has a token itself, which other users of this machine can see in lists of processes")
		e.Hint = "a token in the variable " + secret.TokenVariable + " needs no flag; else name the file or the variable with it: " +
			"--identity-token FILE, env://VARIABLE or fd:N"
		return nil, e
	}
	if variable, ok := secret.Variable(o.Token); ok {
		text, set := o.Secrets.Lookup(variable)
		if !set {
			return nil, cmdline.Usagef("--identity-token %s: the environment variable %s is not set", o.Token, variable)
		}
		return static("--identity-token "+o.Token, text)
	}
	if o.Token != "" {
		return o.given(ctx)
	}
	if text, _ := o.Secrets.Lookup(secret.TokenVariable); text != "" {
		return static("$"+secret.TokenVariable, text)
	}
	bearer, _ := o.Secrets.Lookup(secret.GitHubVariable)
	if address := os.Getenv(githubURL); address != "" && bearer != "" {
		return o.github(address, bearer)
	}
	file := cmp.Or(o.mounted, mountedToken)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return fromFile(ctx, file, file)
	}
	if o.Terminal {
		return o.device()
	}
	e := cmdline.Usagef("there is no identity token to sign with")
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		e.Hint = "give the job the permission \"id-token: write\", or name a token with --identity-token"
	} else {
		e.Hint = "name one with --identity-token FILE, env://VARIABLE or fd:N, or set $" + secret.TokenVariable +
			" (GitLab: below id_tokens, with \"aud: " + audience + "\"); a job of GitHub Actions needs the permission " +
			"\"id-token: write\", a pod a projected token at " + mountedToken + "; on a terminal you can log in"
	}
	return nil, e
}

// given reads the token of the file or the descriptor that the user names.
func (o Options) given(ctx context.Context) (*Source, error) {
	name := "--identity-token " + o.Token
	if info, err := os.Stat(o.Token); err == nil && info.Mode().IsRegular() && !strings.HasPrefix(o.Token, "fd:") {
		return fromFile(ctx, name, o.Token)
	}
	text, err := secret.Read(ctx, o.Token) // a descriptor or a pipe can be read once
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return static(name, string(text))
}

// Source gives a token while that is valid, and then fetches another one. It is safe for concurrent use.
type Source struct {
	Name string // says in messages where the tokens are from

	fetch func(context.Context) (string, error) // nil if there is no other one

	mu    sync.Mutex
	token string
	ends  time.Time // zero if the token does not say
}

// static returns the source of a token that there is once.
func static(name, text string) (*Source, error) {
	s := &Source{Name: name}
	return s, s.keep(text)
}

// fromFile returns the source of a token in a file, which Kubernetes replaces before the token expires.
func fromFile(ctx context.Context, name, file string) (*Source, error) {
	s := &Source{Name: name, fetch: func(ctx context.Context) (string, error) {
		text, err := secret.ReadFile(ctx, file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return string(text), nil
	}}
	_, err := s.Token(ctx)
	return s, err
}

// nearEnd is how long a token must be valid at least to be used again: the request that it is for takes less.
const nearEnd = 10 * time.Second

// Token returns a token that is valid now. It may ask a server, or the user to log in. Errors have nothing of a token.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fetch == nil {
		return s.token, s.expired()
	}
	if s.token == "" || !s.ends.IsZero() && time.Until(s.ends) < nearEnd {
		text, err := s.fetch(ctx)
		if err == nil {
			err = s.keep(text)
		} else if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	return s.token, nil
}

// keep checks a token and keeps it.
func (s *Source) keep(text string) error {
	text = strings.TrimSpace(text)
	ends, err := expiry(text)
	if err != nil {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: s.Name,
			Err: fmt.Errorf("the identity token of %s %w", s.Name, err)}
	}
	s.token, s.ends = text, ends
	return s.expired()
}

// expired says when the token has expired.
func (s *Source) expired() error {
	if s.ends.IsZero() || time.Now().Before(s.ends) {
		return nil
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: s.Name,
		Err:  fmt.Errorf("the identity token of %s expired at %s", s.Name, s.ends.UTC().Format(time.RFC3339)),
		Hint: "it is valid for some minutes: get one right before the command, and check this machine's clock"}
}

// expiry returns when a token expires; zero if it does not say. Whether it is genuine is for the authority to find out.
func expiry(token string) (time.Time, error) {
	if token == "" {
		return time.Time{}, errors.New("is empty")
	}
	bad := errors.New("is no JWT: three parts of base64url with dots between them") // and has nothing of the text
	parts := strings.Split(token, ".")
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") { // which the decoder skips
		return time.Time{}, bad
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	for n, part := range parts {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || n == 0 && !json.Valid(text) || n == 1 && json.Unmarshal(text, &claims) != nil {
			return time.Time{}, bad
		}
	}
	if claims.Expires <= 0 || claims.Expires > 1<<40 { // beyond what a time can be
		return time.Time{}, nil
	}
	return time.Unix(int64(claims.Expires), 0), nil
}
