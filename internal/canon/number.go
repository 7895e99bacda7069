package canon

import (
	"cmp"
	"strconv"
	"strings"
)

// isNumber reports whether text is a valid JSON number.
func isNumber(text string) bool {
	return text != "" && numberEnd([]byte(text), 0) == len(text)
}

// exactInt returns the JSON number of an integer scalar: its text if that is valid JSON, else its decimal form.
func exactInt(text, decimal string) string {
	if isNumber(text) {
		return text
	}
	return decimal
}

// exactFloat returns the JSON number of a fraction or of an integer beyond 64 bits. It keeps the digits and removes
// only what JSON does not allow.
func exactFloat(text string, f float64) string {
	if isNumber(text) {
		return text
	}
	s := strings.ReplaceAll(strings.TrimPrefix(text, "+"), "_", "")
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	whole = strings.TrimLeft(whole, "0")
	whole = cmp.Or(whole, "0")
	if fraction != "" {
		fraction = "." + fraction
	}
	s = sign + whole + fraction + exponent
	if g, err := strconv.ParseFloat(s, 64); isNumber(s) && err == nil && g == f {
		return s
	}
	// Hexadecimal fractions and similar forms, which the library accepts although YAML 1.1 does not have them.
	return string(appendFloat(nil, f))
}

// appendFloat writes f as encoding/json does.
func appendFloat(dst []byte, f float64) []byte {
	abs := max(f, -f)
	format := byte('f')
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}
