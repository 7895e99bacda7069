package web

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

// An icon is kept by browsers under the address that the pages have for it, and SVG is compressed.
func TestIcons(t *testing.T) {
	drawing := "<svg xmlns='http://www.w3.org/2000/svg'>" + strings.Repeat("<path d='M0 0h1'/>", 200) + "</svg>"
	icon, _ := redraw([]byte(drawing))
	blob := `{"schema":"olm.package","name":"a","icon":{"mediatype":"image/svg+xml","base64data":"` +
		base64.StdEncoding.EncodeToString([]byte(drawing)) + `"}}`
	c := contentOf(t, fstest.MapFS{"c.json": {Data: []byte(blob)}})
	server := siteOf(t, c).URL
	if list := get(t, server+"/").body; !strings.Contains(list, `data-icon="icon?package=a&amp;v=`+c.version()+`"`) {
		t.Errorf("the list does not name the icon: %s", list)
	}
	for path, kept := range map[string]string{"/icon?package=a": "no-cache", "/icon?package=a&v=0": "no-cache",
		"/icon?package=a&v=" + c.version(): "public, max-age=86400, immutable"} {
		plain, zipped := get(t, server+path), get(t, server+path, "Accept-Encoding", "gzip")
		if plain.body != string(icon) || plain.header.Get("Cache-Control") != kept ||
			zipped.header.Get("Cache-Control") != kept {
			t.Errorf("%s: %d bytes, %v", path, len(plain.body), plain.header)
		}
		r, err := gzip.NewReader(strings.NewReader(zipped.body))
		if err != nil || len(zipped.body) > len(icon)/4 || zipped.header.Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %d bytes, %v, %v", path, len(zipped.body), zipped.header, err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != string(icon) {
			t.Errorf("%s: %v %.100s", path, err, text)
		}
		tag := zipped.header.Get("ETag")
		if again := get(t, server+path, "Accept-Encoding", "gzip", "If-None-Match",
			tag); again.code != http.StatusNotModified ||
			tag == plain.header.Get("ETag") {
			t.Errorf("%s: %d with %s", path, again.code, tag)
		}
		if part := get(t, server+path, "Accept-Encoding", "gzip", "Range", "bytes=0-3"); part.body != "<svg" {
			t.Errorf("%s: a range is %q", path, part.body)
		}
	}
}
