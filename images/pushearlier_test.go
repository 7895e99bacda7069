package images

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// What the image under the tag has is not asked for again, unless it has gone meanwhile.
func TestBlobsOfTheEarlierImageAreNotAskedFor(t *testing.T) {
	contents := []string{"a", "b", "c", "d", "e", "f"}
	for name, gone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			reg := testregistry.New(t)
			reg.Separate(false) // it refuses manifests of blobs that it lacks
			first := packages(t, contents...)
			if _, err := pushTo(t, first, CopyOptions{}, reg.Host()+"/a/b:v1"); err != nil {
				t.Fatal(err)
			}
			if gone {
				reg.DeleteBlob(layerOf(t, first, 0).Digest)
			}
			reg.Forget()
			edited := slices.Clone(contents)
			edited[3] = "changed"
			next := packages(t, edited...)
			r, err := pushTo(t, next, CopyOptions{}, reg.Host()+"/a/b:v1")
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			for _, q := range reg.Requests() {
				if strings.HasPrefix(q, "HEAD ") && strings.Contains(q, "/blobs/") {
					asked++
				}
			}
			want, reused := 2, 5
			if gone {
				want, reused = 2+7, 4
			}
			if asked != want || int(r[0].Traffic.Reused.Count) != reused {
				t.Errorf("asked for %d blobs, want %d; %+v", asked, want, r[0].Traffic)
			}
			for i := range edited {
				if d := layerOf(t, next, i).Digest; !hasBlobOf(t, reg, d.String()) {
					t.Errorf("layer %d is not there", i)
				}
			}
		})
	}
}

func hasBlobOf(t *testing.T, reg *testregistry.Registry, d string) bool {
	t.Helper()
	resp, err := http.Head("http://" + reg.Host() + "/v2/a/b/blobs/" + d)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
