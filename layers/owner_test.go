package layers

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"testing"
)

// Entries copied from other images keep owner, special bits and attributes, and each of these changes layer and key.
func TestEntriesWithOwnersOfTheirOwn(t *testing.T) {
	plain := Bytes("f", 0o755, []byte("x"))
	owned, special, attributes := plain, plain, plain
	owned.UID, owned.GID = 5, 6
	special.Mode |= fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	attributes.Xattrs = map[string]string{"user.a": "b"}
	keys := map[string]bool{}
	for _, e := range []Entry{plain, owned, special, attributes} {
		l, err := Layer{Name: "l", Entries: []Entry{e}}.Hash(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		key, err := l.Key(Options{Compression: Uncompressed})
		if err != nil {
			t.Fatal(err)
		}
		keys[key.String()] = true
		var b bytes.Buffer
		if _, err := l.Write(t.Context(), &b, Options{Compression: Uncompressed}); err != nil {
			t.Fatal(err)
		}
		h, err := tar.NewReader(&b).Next()
		if err != nil {
			t.Fatal(err)
		}
		mode := int64(0o755)
		if e.Mode&fs.ModeSetuid != 0 {
			mode = 0o7755
		}
		if h.Uid != e.UID || h.Gid != e.GID || h.Mode != mode ||
			h.PAXRecords["SCHILY.xattr.user.a"] != e.Xattrs["user.a"] {
			t.Errorf("%+v", h)
		}
	}
	if len(keys) != 4 {
		t.Errorf("%d keys for 4 layers", len(keys))
	}
}
