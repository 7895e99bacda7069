package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/secret"
)

// GitHub is asked as it wants it, again while it fails, and for another token when one is near its end.
func TestGitHub(t *testing.T) {
	k := newTokens(t)
	first, second := k.of("first", nearEnd/2), k.of("second", time.Hour)
	const bearer, inQuery = "bearer-secret", "query-secret"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another host is asked")
	}))
	defer elsewhere.Close()
	for _, c := range []struct {
		rule    string
		answers []string // STATUS BODY; the last one again and again
		want    []string
		asked   int
		message string
	}{
		{"a token, kept", []string{"200 " + second}, []string{second, second}, 1, ""},
		{"near its end", []string{"200 " + first, "200 " + second}, []string{first, second, second}, 2, ""},
		{"failing twice", []string{"503", "429", "200 " + second}, []string{second}, 3, ""},
		{"failing", []string{"500 " + second}, nil, 4, "it answers 500 Internal Server Error"},
		{"refused", []string{"403 " + second}, nil, 1, "it answers 403 Forbidden"},
		{"sent elsewhere", []string{"307"}, nil, 1, "redirects to another place"},
		{"an empty token", []string{"200"}, nil, 1, "its answer has no token"},
		{"no JWT", []string{"200 word"}, nil, 1, "the identity token of GitHub Actions is no JWT"},
		{"expired", []string{"200 " + k.of("old", -time.Hour)}, nil, 1, "the identity token of GitHub Actions expired at"},
		{"no JSON", []string{`200 "` + second}, nil, 1, "its answer is not the JSON"},
		{"too long", []string{"200 " + strings.Repeat("a", 64<<10)}, nil, 1, "answers with more than"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.Header.Get("Authorization") != "bearer "+bearer ||
					r.URL.Path != "/path" || r.URL.Query().Get("s") != inQuery || r.URL.Query().Get("audience") != "sigstore" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				var status int
				var body string
				_, _ = fmt.Sscan(c.answers[min(asked, len(c.answers)-1)], &status, &body)
				asked++
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"count":1,"value":"%s"}`, body)
			}))
			defer server.Close()
			clean(t)
			t.Setenv(githubURL, server.URL+"/path?s="+inQuery)
			t.Setenv(secret.GitHubVariable, bearer)
			s, err := Options{pause: time.Nanosecond, Secrets: taken("")}.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if got, err := s.Token(t.Context()); err != nil || got != want {
					t.Error(got, err)
				}
			}
			if c.message != "" {
				_, err := s.Token(t.Context())
				if err == nil || !strings.Contains(err.Error(), c.message) {
					t.Fatal(err)
				}
				noSecret(t, err, bearer, inQuery, first, second)
			}
			if asked != c.asked {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// Where there is no server the error names the host alone; the end of the context ends a pause.
func TestGitHubFails(t *testing.T) {
	clean(t)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel()
	}))
	s, err := Options{pause: time.Hour}.github(server.URL+"/path?s=query-secret", "bearer-secret")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	server.Close()
	s, err = Options{pause: time.Nanosecond}.github(server.URL+"/path?s=query-secret", "bearer-secret")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Token(t.Context())
	if host := strings.TrimPrefix(server.URL, "http://"); err == nil || cmdline.Classify(err) != cmdline.ClassNetwork ||
		!strings.Contains(err.Error(), "asking "+host+" for") {
		t.Fatal(err)
	}
	noSecret(t, err, "bearer-secret", "query-secret", "/path")
}
