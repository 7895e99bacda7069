package medium

import (
	"archive/tar"
	"bytes"
	"testing"
)

// Headers of blobs of 8 GiB and more have records before them; those of places without a meaning are as long, as they
// are written over them.
func TestHeaders(t *testing.T) {
	k := key{1, 2, 3}
	for size, length := range map[int64]int{0: 512, 1 << 30: 512, 1<<33 - 1: 512, 1 << 33: 1536, 1 << 50: 1536} {
		for _, form := range []Form{OCI, OCMirror} {
			head, err := header(form.blobName(k), size)
			if err != nil || len(head) != length {
				t.Errorf("%s %d: %d bytes, %v", form, size, len(head), err)
			}
			h, err := tar.NewReader(bytes.NewReader(head)).Next()
			if err != nil || h.Size != size || h.Name != form.blobName(k) {
				t.Errorf("%s %d: %+v %v", form, size, h, err)
			}
			if got, ok := form.blobKey(h.Name); !ok || got != k {
				t.Errorf("%s: %v", form, got)
			}
		}
		if void, err := header(voidPrefix+k.digest().Encoded(), size); err != nil || len(void) != length {
			t.Errorf("%d: %d bytes, %v", size, len(void), err)
		}
	}
}
