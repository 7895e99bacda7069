package canon

import (
	"math"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// fraction matches numbers that are not 64-bit integers.
var fraction = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// resolveScalar resolves a plain scalar without a tag as opm's YAML library does: to nil, bool, int, int64, uint64,
// float64 or, for everything else (dates and base-60 numbers included), the text itself.
func resolveScalar(text string) any {
	if text == "" {
		return nil
	}
	switch c := text[0]; {
	case c == '.':
		switch text {
		case ".nan", ".NaN", ".NAN":
			return math.NaN()
		case ".inf", ".Inf", ".INF":
			return math.Inf(1)
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
	case c == '+' || c == '-' || '0' <= c && c <= '9':
		return numericMeaning(text)
	default:
		if m, ok := wordMeaning([]byte(text)); ok {
			return m
		}
	}
	return text
}

// wordMeaning resolves a word; ok is false if it is a string.
func wordMeaning(text []byte) (m any, ok bool) {
	switch string(text) {
	case "~", "null", "Null", "NULL":
		return nil, true
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	}
	return nil, false
}

// numericMeaning resolves a scalar that begins with a digit or a sign.
func numericMeaning(text string) any {
	switch text {
	case "+.inf", "+.Inf", "+.INF":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	digits := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
		return int(i)
	}
	if u, err := strconv.ParseUint(digits, 0, 64); err == nil {
		return u
	}
	if fraction().MatchString(digits) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	// The library accepts a sign after the prefix too.
	if bits, ok := strings.CutPrefix(digits, "0b"); ok {
		if i, err := strconv.ParseInt(bits, 2, 64); err == nil {
			return int(i)
		}
	}
	return text
}
