package bundle

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// appendOpm appends canonical JSON with the bytes that opm writes for content read from a file: characters with a
// meaning in HTML are escaped, and numbers have the shortest form of a float64 if that is the same number. Other
// numbers keep their digits.
func appendOpm(dst, src []byte) []byte {
	start := 0
	for i := 0; i < len(src); {
		switch class[src[i]] {
		case classQuote:
			i++
			for src[i] != '"' {
				switch c := src[i]; c {
				case '\\':
					i += 2
				case '<', '>', '&':
					dst = append(dst, src[start:i]...)
					dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
					i++
					start = i
				default:
					i++
				}
			}
			i++
		case classNumber:
			end := i + 1
			plain := src[i] != '-' || src[end] != '0'
			for end < len(src) && class[src[end]] >= classNumber {
				plain = plain && class[src[end]] == classNumber
				end++
			}
			if !plain || end-i > 18 {
				dst = append(dst, src[start:i]...)
				dst = appendNumber(dst, src[i:end])
				start = end
			}
			i = end
		default:
			i++
		}
	}
	return append(dst, src[start:]...)
}

const hexDigits = "0123456789abcdef"

const (
	classQuote    = 1
	classNumber   = 2 // a digit, or the sign before one
	classFraction = 3 // the other characters of numbers
)

var class = [256]byte{
	'"': classQuote,
	'-': classNumber, '0': classNumber, '1': classNumber, '2': classNumber, '3': classNumber, '4': classNumber,
	'5': classNumber, '6': classNumber, '7': classNumber, '8': classNumber, '9': classNumber,
	'.': classFraction, 'e': classFraction, 'E': classFraction, '+': classFraction,
}

// appendNumber appends a number as encoding/json formats it as a float or integer, or unchanged if that would be a
// different number.
func appendNumber(dst, number []byte) []byte {
	if i, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return strconv.AppendInt(dst, i, 10)
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return append(dst, number...)
	}
	out, err := json.Marshal(f)
	if err != nil || !sameNumber(number, out) {
		return append(dst, number...)
	}
	if f == 0 {
		out = []byte("0") // YAML loses the sign of minus zero
	}
	return append(dst, out...)
}

// sameNumber compares two JSON numbers without arithmetic, which a hostile exponent would make expensive.
func sameNumber(a, b []byte) bool {
	x, xExponent, xOk := decimal(a)
	y, yExponent, yOk := decimal(b)
	return xOk && yOk && bytes.Equal(x, y) && (xExponent == yExponent || len(x) == 0)
}

// decimal returns the significant digits of a JSON number and the exponent of the last one. Zero has no digits. The
// sign is ignored.
func decimal(number []byte) (digits []byte, exponent int, ok bool) {
	number = bytes.TrimPrefix(number, []byte("-"))
	mantissa, power := number, []byte("0")
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits = append(bytes.Clone(whole), fraction...)
	digits = bytes.TrimLeft(digits, "0")
	significant := bytes.TrimRight(digits, "0")
	if len(significant) == 0 {
		return nil, 0, true
	}
	exponent, err := strconv.Atoi(string(power))
	if err != nil || exponent > 1<<20 || exponent < -1<<20 {
		return nil, 0, false
	}
	return significant, exponent - len(fraction) + len(digits) - len(significant), true
}
