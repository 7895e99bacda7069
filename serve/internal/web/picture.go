package web

import (
	"net/http"

	"github.com/operator-bindery/bindery/declcfg"
)

// maxIcon is the maximum size of a displayed icon in bytes.
const maxIcon = 1 << 20

// svgType is the media type of drawings.
const svgType = "image/svg+xml"

// extensions are those of the files of icons, by the media types that pages show.
var extensions = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", svgType: ".svg"}

// picture is an icon as it is sent or written.
type picture struct {
	kind   string // the media type; empty for one that is not shown
	data   []byte
	zipped bool
}

// pictureOf returns the icon of a package as pages pass it on. Its bytes say what it is, and not the catalog: a picture
// is one of those that browsers decode and do not run, and everything else is a drawing that is written from its parts.
func pictureOf(icon *declcfg.Icon) picture {
	if icon == nil || len(icon.Data) == 0 || len(icon.Data) > maxIcon {
		return picture{}
	}
	if kind := http.DetectContentType(icon.Data); extensions[kind] != "" && kind != svgType {
		return picture{kind: kind, data: icon.Data}
	}
	if svg, ok := redraw(icon.Data); ok {
		return picture{kind: svgType, data: svg}
	}
	return picture{}
}
