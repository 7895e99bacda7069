package webclient_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/webclient"
)

func server(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func client(t *testing.T) *webclient.Client {
	t.Helper()
	c, err := webclient.NewClient(t.Context(), webclient.Options{Retries: 2, Pause: time.Millisecond, Stall: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A server that fails is asked again, and what it says in the end is the answer.
func TestRetries(t *testing.T) {
	asked := 0
	at := server(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte("<html>\x1b[0m"))
	})
	a, err := client(t).Get(t.Context(), at, "application/json", 100)
	if err != nil {
		t.Fatal(err)
	}
	if want := `status 418, text/html: "<html>\x1b[0m"`; a.String() != want {
		t.Errorf("%s\nwant %s", a, want)
	}
}

// An answer has limits of size and time, and errors show nothing that is secret.
func TestLimits(t *testing.T) {
	at := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, 101))
		case "/stalls":
			_, _ = w.Write([]byte("a"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	_, err := client(t).Get(t.Context(), at+"/large", "", 100)
	if !errors.Is(err, fault.ErrLimit) {
		t.Errorf("large: %v", err)
	}
	_, err = client(t).Get(t.Context(), at+"/stalls?token=secret", "", 100)
	if err == nil || !strings.Contains(err.Error(), "nothing has moved for") || fault.ClassOf(err) != fault.Network {
		t.Errorf("stalls: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error has a secret: %v", err)
	}
	for _, text := range []string{"ftp://example.com", "example.com", "https://", "http://a:b:c"} {
		if _, err := client(t).Get(t.Context(), text, "", 1); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A redirect is followed.
func TestRedirect(t *testing.T) {
	plain := server(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("found")) })
	at := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain, http.StatusFound) })
	a, err := client(t).Get(t.Context(), at, "", 100)
	if err != nil || string(a.Body) != "found" {
		t.Errorf("%v, %v", a, err)
	}
}
