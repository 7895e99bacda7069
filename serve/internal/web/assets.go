package web

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/declcfg/graph"
)

//go:embed assets/style.css
var style string

//go:embed assets/page.js
var script string

//go:embed assets/mark.svg
var mark string

// asset is a static file, the same for every catalog. Its URL contains a hash of its content, so that browsers can
// cache it indefinitely.
type asset struct {
	kind, text string
	zipped     []byte // the text in gzip
}

var assetPaths = sync.OnceValue(func() map[string]string {
	paths := map[string]string{}
	for path := range assets() {
		base, rest, _ := strings.Cut(path, "-")
		_, extension, _ := strings.Cut(rest, ".")
		paths[base+"."+extension] = path
	}
	return paths
})

// assetPath returns the path of an asset, such as "style-0123456789ab.css" for "style.css".
func assetPath(name string) string { return assetPaths()[name] }

var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	zips := newCompressors(0)
	for name, a := range map[string]asset{
		"style.css": {kind: "text/css; charset=utf-8", text: style + graph.Stylesheet},
		"page.js": {kind: "text/javascript; charset=utf-8",
			text: `"use strict";` + "\n" + graph.HoverScript + script},
		"mark.svg": {kind: "image/svg+xml", text: mark},
	} {
		a.zipped = zips.compress([]byte(a.text))
		sum := sha256.Sum256([]byte(a.text))
		base, extension, _ := strings.Cut(name, ".")
		all[base+"-"+hex.EncodeToString(sum[:6])+"."+extension] = a
	}
	return all
})

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	if acceptsGzip(r.Header) && r.Header.Get("Range") == "" {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(a.zipped)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(a.zipped)
		}
		return
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(a.text))
}
