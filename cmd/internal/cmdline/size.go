package cmdline

import (
	"fmt"
	"strconv"
	"strings"
)

// units are the prefixes of size units. Alone or with "i" they are powers of 1024, as in Kubernetes' quantities with
// "i"; with only a "B" they are powers of 1000.
const units = "KMGT"

// FormatSize formats a number of bytes with the binary units of [ParseSize]: 512 B, 36.4 MiB, 2 GiB.
func FormatSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), -1
	// 1023.95 would be rounded to 1024.0.
	for v >= 1023.95 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	return fmt.Sprintf("%s %ciB", strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0"), units[unit])
}

// ParseSize parses a number of bytes: 1024, 512KiB, 4GiB, 2G, 500MB. "K" and "KiB" are 1024 bytes, "KB" is 1000.
func ParseSize(text string) (int64, error) {
	number, base, power := text, int64(1024), 0
	switch {
	case strings.HasSuffix(number, "iB"):
		number = strings.TrimSuffix(number, "iB")
	case strings.HasSuffix(number, "B"):
		number, base = strings.TrimSuffix(number, "B"), 1000
	}
	if number != "" {
		if i := strings.IndexByte(units, number[len(number)-1]); i >= 0 {
			number, power = number[:len(number)-1], i+1
		}
	}
	if power == 0 && strings.HasSuffix(text, "iB") {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	for range power {
		if n > (1<<63-1)/base {
			return 0, fmt.Errorf("invalid size %q: too large", text)
		}
		n *= base
	}
	return n, nil
}
