package rootless

import (
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images/transport"
)

// storePrefix is the transport of images in a store.
const storePrefix = string(transport.Store) + ":"

// textFlags are flags whose value is free text, where the name of an image has no effect.
var textFlags = map[string]bool{"label": true, "annotation": true, "message": true, "m": true}

// NamesStoreImage reports whether a word is the name of an image in a store, a list with one, or NAME=VALUE with one.
func NamesStoreImage(word string) bool {
	for at := 0; ; at += len(storePrefix) {
		i := strings.Index(word[at:], storePrefix)
		if i < 0 {
			return false
		}
		at += i
		if at > 0 && !strings.ContainsRune("=,\"'", rune(word[at-1])) {
			continue
		}
		rest := strings.Trim(word[at:], "\"'")
		first, _, _ := strings.Cut(rest, ",")
		for _, name := range []string{rest, first} {
			if _, err := program.Transports.Source(name); err == nil {
				return true
			}
		}
	}
}
