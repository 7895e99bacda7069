package releases_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/releases"
)

// A request has what graph servers ask for; parameters of the URL stay unless they are those of the request.
func TestRequest(t *testing.T) {
	var asked []url.Values
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query())
		if r.Header.Get("Accept") != "application/json" || r.Method != http.MethodGet {
			t.Errorf("%s %v", r.Method, r.Header)
		}
		_, _ = w.Write([]byte("{}"))
	}))
	defer web.Close()
	s := &releases.Server{Client: newClient(t), OCP: web.URL + "/graph?team=a&arch=other&version=4.0.0"}
	for _, version := range []string{"", "4.1.0"} {
		q := releases.Query{Type: releases.OCP, Architecture: "amd64", Channel: "stable-4.16", Version: version}
		if _, err := s.Graph(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		got := asked[len(asked)-1]
		if id := got.Get("id"); len(id) != 36 {
			t.Errorf("id %q", id)
		}
		got.Del("id")
		want := "arch=amd64&channel=stable-4.16&team=a"
		if version != "" {
			want += "&version=" + version
		}
		if got.Encode() != want {
			t.Errorf("got %s, want %s", got.Encode(), want)
		}
	}
}

// What is no graph is an error that says what was asked and what came, without what may be secret; it is not saved.
func TestAnswersThatAreNoGraphs(t *testing.T) {
	status, body := 200, ""
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer web.Close()
	s := &releases.Server{Client: newClient(t), OCP: web.URL + "/graph?token=secret",
		Save: func(string, string, []byte) error { t.Error("saved"); return nil }}
	for _, c := range []struct {
		status int
		body   string
		class  fault.Class
		want   string
	}{
		{500, "boom", fault.Network, ` answers with status 500, text/html: "boom"`},
		{201, "{}", fault.Network, ` answers with status 201, text/html: "{}"`},
		{200, "<html>\x1b", fault.Input, ` answers with status 200, text/html: "<html>\x1b": no graph: invalid character '<'`},
	} {
		status, body = c.status, c.body
		_, err := releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}}}.Choose(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), web.URL+"/graph?arch=amd64&channel=stable-4.16"+c.want) ||
			strings.Contains(err.Error(), "secret") || fault.ClassOf(err) != c.class {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	web.Close()
	_, err := releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}}}.Choose(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "refused") || fault.ClassOf(err) != fault.Network ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// The error of saving a graph is that of the channel.
func TestSaveFails(t *testing.T) {
	full := errors.New("disk full")
	web := httptest.NewServer(&graphServer{})
	defer web.Close()
	s := &releases.Server{Client: newClient(t), OCP: web.URL, Save: func(string, string, []byte) error { return full }}
	_, err := releases.Request{Channels: []releases.Channel{{Name: "stable-4.16"}}}.Choose(t.Context(), s)
	if !errors.Is(err, full) {
		t.Error(err)
	}
}

// A directory takes the place of a server.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "amd64-stable-4.10.json"), []byte(graph("4.10.0")), 0o600); err != nil {
		t.Fatal(err)
	}
	at := "file://" + filepath.ToSlash(dir)
	if runtime.GOOS == "windows" {
		at = "file:///" + filepath.ToSlash(dir)
	}
	saved := ""
	s := &releases.Server{OCP: at, Save: func(_, _ string, text []byte) error { saved = string(text); return nil }}
	choice, err := releases.Request{Channels: []releases.Channel{{Name: "stable-4.10"}}}.Choose(t.Context(), s)
	if err != nil || len(choice.Releases) != 1 || saved != graph("4.10.0") {
		t.Errorf("%v, %v, %s", choice, err, saved)
	}
	_, err = releases.Request{Channels: []releases.Channel{{Name: "fast-5"}}}.Choose(t.Context(), s)
	if !errors.Is(err, releases.ErrNotStored) || !strings.Contains(err.Error(), filepath.Base(dir)) {
		t.Error(err)
	}
	for _, at := range []string{"file://host/x", "file://", "file://%zz", "ftp://x/y"} {
		s := &releases.Server{Client: newClient(t), OCP: at}
		if _, err := s.Graph(t.Context(), releases.Query{}); fault.ClassOf(err) != fault.Input {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// A graph that was not stored is reported with what was.
func TestStored(t *testing.T) {
	files := fstest.MapFS{"amd64-stable-4.9.json": {Data: []byte(graph("4.9.0"))},
		"amd64-fast-4.10.json": {Data: []byte("<")}, "amd64-dir.json/x": {}}
	for name, want := range map[string]string{
		"stable-4.16": `channel "stable-4.16", amd64: not in this archive (which has "dir", "fast-4.10", "stable-4.9" for amd64)`,
		"stable-4.8":  `channel "stable-4.8", amd64: not in this archive (which has "dir", "fast-4.10", "stable-4.9" for amd64)`,
		"fast-4.10":   `channel "fast-4.10", amd64: amd64-fast-4.10.json in this archive: no graph: invalid character '<' looking for beginning of value`,
		"dir":         `channel "dir", amd64: amd64-dir.json is not a regular file`,
	} {
		_, err := releases.Request{Channels: []releases.Channel{{Name: name}}}.Choose(t.Context(), releases.Stored{Files: files})
		if err == nil || err.Error() != want || fault.ClassOf(err) != fault.Input {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	request := releases.Request{Channels: []releases.Channel{{Name: "stable-4.9"}}, Architectures: []string{"arm64"}}
	for _, c := range []struct {
		files fstest.MapFS
		want  string
	}{
		{files, `not in this archive (which has nothing for arm64, but "amd64-dir.json", "amd64-fast-4.10.json", ` +
			`"amd64-stable-4.9.json")`},
		{nil, `not in this archive (which has no graphs of releases)`},
	} {
		_, err := request.Choose(t.Context(), releases.Stored{Files: c.files})
		if !errors.Is(err, releases.ErrNotStored) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}
