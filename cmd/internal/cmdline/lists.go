package cmdline

import (
	"encoding/csv"
	"strings"

	"github.com/operator-bindery/bindery/internal/printable"
)

// List joins the values of a repeated flag. Each value may itself be a comma-separated list; a part in double quotes
// keeps its commas.
func List(values []string) ([]string, error) {
	var out []string
	for _, v := range values {
		if v == "" {
			continue
		}
		parts, err := csv.NewReader(strings.NewReader(v)).Read()
		if err != nil {
			return nil, Usagef("invalid list %q: %w", v, err)
		}
		out = append(out, parts...)
	}
	return out, nil
}

// Pairs parses the values of a repeated key=value flag. A value may be a comma-separated list of pairs; a part without
// "=" belongs to the pair before it, so that commas in a value need no quotes. A later pair replaces an earlier one
// with the same key.
func Pairs(flag string, values []string) (map[string]string, error) {
	out := map[string]string{}
	for _, v := range values {
		key := ""
		for i, part := range strings.Split(v, ",") {
			k, val, ok := strings.Cut(part, "=")
			switch {
			case ok && !printable.NoControl(k):
				return nil, Usagef("--%s %q: the key has control characters", flag, v)
			case ok && k != "":
				key = k
				out[key] = val
			case i == 0 || ok:
				return nil, Usagef("--%s %q: expected key=value", flag, v)
			default:
				out[key] += "," + part
			}
		}
	}
	return out, nil
}
