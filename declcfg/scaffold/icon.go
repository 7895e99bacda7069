package scaffold

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
	"slices"
)

// signatures are the first bytes of image formats.
var signatures = []struct{ mediaType, bytes string }{
	{"image/png", "\x89PNG\r\n\x1a\n"},
	{"image/jpeg", "\xff\xd8\xff"},
	{"image/gif", "GIF87a"},
	{"image/gif", "GIF89a"},
	{"image/bmp", "BM"},
	{"image/tiff", "II*\x00"},
	{"image/tiff", "MM\x00*"},
	{"image/vnd.microsoft.icon", "\x00\x00\x01\x00"},
	{"image/jp2", "\x00\x00\x00\x0cjP  \r\n\x87\n"},
	{"image/vnd.adobe.photoshop", "8BPS"},
}

// imageType returns the media type of a picture, recognised by its first bytes, or for SVG by its first XML element;
// empty if the type is unknown. The rest of the data is not checked.
func imageType(data []byte) string {
	for _, s := range signatures {
		if bytes.HasPrefix(data, []byte(s.bytes)) {
			return s.mediaType
		}
	}
	switch {
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return "image/webp"
	case isBrand(data, "avif", "avis"):
		return "image/avif"
	case isBrand(data, "heic", "heix", "mif1", "msf1"):
		return "image/heif"
	case isSVG(data):
		return "image/svg+xml"
	}
	return ""
}

// isBrand looks for one of the brands in the file type box that an ISO base media file (ISO/IEC 14496-12) starts with.
func isBrand(data []byte, brands ...string) bool {
	if len(data) < 16 || string(data[4:8]) != "ftyp" {
		return false
	}
	size := min(int(binary.BigEndian.Uint32(data)), len(data), 256)
	for at := 8; at+4 <= size; at += 4 {
		if slices.Contains(brands, string(data[at:at+4])) {
			return true
		}
	}
	return false
}

// isSVG reports whether the first XML element is svg.
func isSVG(data []byte) bool {
	d := xml.NewDecoder(io.LimitReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), 64<<10))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	for {
		t, err := d.RawToken()
		if err != nil {
			return false
		}
		switch t := t.(type) {
		case xml.StartElement:
			return t.Name.Local == "svg"
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return false
			}
		}
	}
}
