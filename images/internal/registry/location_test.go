package registry

import (
	"net/http"
	"net/url"
	"testing"
)

func TestUploadLocations(t *testing.T) {
	for _, c := range []struct{ host, at, says, want string }{
		{"r.example.com", "https://r.example.com/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/1?x=y",
			"https://r.example.com/v2/a/blobs/uploads/1?x=y"},
		{"r.example.com", "https://r.example.com/v2/a/blobs/uploads/", "1",
			"https://r.example.com/v2/a/blobs/uploads/1"},
		{"r.example.com", "https://r.example.com/v2/", "https://user:pw@r.example.com:443/1",
			"https://r.example.com:443/1"},
		{"r.example.com", "https://r.example.com/v2/", "http://r.example.com/1", "https://r.example.com/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "http://r.example.com:5000/1",
			"http://r.example.com:5000/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "https://r.example.com:5000/1",
			"http://r.example.com:5000/1"},
		{"r.example.com", "https://r.example.com/v2/", "https://store.example.com/1",
			"foreign https://store.example.com/1"},
		{"r.example.com:5000", "http://r.example.com:5000/v2/", "http://r.example.com/1",
			"foreign http://r.example.com/1"},
		{"r.example.com", "https://r.example.com/v2/", "http://store.example.com/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "ftp://r.example.com/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "https://169.254.169.254/latest", "error"},
		{"r.example.com", "https://r.example.com/v2/", "https://127.0.0.1/1", "error"},
		{"r.example.com", "https://r.example.com/v2/", "", "error"},
		{"r.example.com", "https://r.example.com/v2/", "://", "error"},
	} {
		p := &repository{host: &host{hostKey: hostKey{name: c.host}, address: c.host}}
		at, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		got, foreign, err := p.location(
			&http.Response{Header: http.Header{"Location": {c.says}}, Request: &http.Request{URL: at}})
		text := "error"
		if err == nil {
			text = got.String()
		}
		if foreign {
			text = "foreign " + text
		}
		if text != c.want {
			t.Errorf("%s at %s: got %s, want %s (%v)", c.says, c.at, text, c.want, err)
		}
	}
}
