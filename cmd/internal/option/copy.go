package option

import (
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/referrers"
)

// AttachmentKinds reads --with.
func AttachmentKinds(values []string) (referrers.Kinds, error) {
	var kinds referrers.Kinds
	list, err := cmdline.List(values)
	if err != nil {
		return kinds, err
	}
	if len(list) == 0 {
		return kinds, cmdline.Usagef("--with is empty, expected (signatures|referrers|none)")
	}
	for _, v := range list {
		switch v {
		case "signatures":
			kinds.Tags = true
		case "referrers":
			kinds.Referrers = true
		case "none":
			if len(list) > 1 {
				return kinds, cmdline.Usagef("--with none excludes other kinds")
			}
		default:
			return kinds, cmdline.Usagef("invalid --with value %q, expected (signatures|referrers|none)", v)
		}
	}
	return kinds, nil
}
