package storetest_test

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.TestWriter(t, func(testing.TB) storetest.Place {
		m := storetest.NewMemory()
		return storetest.Place{Conditions: true, Writer: func(testing.TB) store.Writer { return m },
			Corrupt: func(_ testing.TB, d digest.Digest) {
				for _, at := range []map[string][]byte{m.Manifests} {
					if text, ok := at[d.String()]; ok {
						text[len(text)/2] ^= 1
					}
				}
				if content, ok := m.Blobs[d]; ok {
					content[0] ^= 1
				}
			}}
	})
}
