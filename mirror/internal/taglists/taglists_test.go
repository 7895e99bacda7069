package taglists

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/store/storetest"
)

// counted counts the requests that reach a repository.
type counted struct {
	store.Reader
	lists, manifests int
	fail             bool
}

func (c *counted) Tags(ctx context.Context, pages int) ([]string, bool, error) {
	c.lists++
	if c.fail {
		return nil, false, errors.New("refused")
	}
	return c.Reader.Tags(ctx, pages)
}

func (c *counted) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	c.manifests++
	return c.Reader.Manifest(ctx, name)
}

func (c *counted) Referrers(_ context.Context, subject digest.Digest, has func(string) bool) ([]v1.Descriptor, error) {
	if has("sha256-" + subject.Encoded()) {
		return []v1.Descriptor{{Digest: subject}}, nil
	}
	return nil, nil
}

// A tag of an attachment that the list does not have is not asked for; all else is.
func TestReader(t *testing.T) {
	place := storetest.NewMemory()
	of := digest.FromString("image")
	signature := "sha256-" + of.Encoded() + ".sig"
	place.Manifests[signature], place.Manifests["v1"] = []byte("{}"), []byte("{}")
	for _, c := range []struct {
		name            string
		fail            bool
		manifests, list int
	}{{"listed", false, 2, 1}, {"refused", true, 3, 1}} {
		from := &counted{Reader: place, fail: c.fail}
		at := New(map[string]int{"acme/app": 3}).Reader("acme/app", from)
		for name, there := range map[string]bool{signature: true, "v1": true, "sha256-" + of.Encoded() + ".att": false} {
			_, _, err := at.Manifest(t.Context(), name)
			if (err == nil) != there || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %s: %v", c.name, name, err)
			}
		}
		if from.manifests != c.manifests || from.lists != c.list {
			t.Errorf("%s: %d manifests and %d lists were asked for", c.name, from.manifests, from.lists)
		}
		found, err := at.Referrers(t.Context(), of, nil)
		if want := map[bool]int{true: 1}[c.fail]; err != nil || len(found) != want {
			t.Errorf("%s: %v, %v", c.name, found, err)
		}
	}

	// The end of one caller's context is no answer for others.
	from := &counted{Reader: place}
	at := New(nil).Reader("acme/app", from)
	ended, end := context.WithCancel(t.Context())
	end()
	from.fail = true
	_, _, _ = at.Manifest(ended, signature)
	from.fail = false
	if _, _, err := at.Manifest(t.Context(), "sha256-"+of.Encoded()+".att"); !errors.Is(err, fs.ErrNotExist) || from.lists != 2 || from.manifests != 1 {
		t.Errorf("%v, %d lists and %d manifests were asked for", err, from.lists, from.manifests)
	}
	place.Abilities = &store.Abilities{}
	if at := New(nil).Reader("acme/app", place); at != store.Reader(place) {
		t.Error("a place without tags is wrapped")
	}
}
