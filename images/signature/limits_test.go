package signature_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
)

// endless lists 4,000 referrers for every subject, none of which is there.
type endless struct {
	store.Reader
	asked atomic.Int64
}

func (e *endless) Manifest(context.Context, string) ([]byte, string, error) {
	e.asked.Add(1)
	return nil, "", fs.ErrNotExist
}

func (e *endless) Referrers(_ context.Context, subject digest.Digest, _ func(string) bool) ([]v1.Descriptor, error) {
	listed := make([]v1.Descriptor, 4000)
	for n := range listed {
		listed[n].Digest = digest.FromString(fmt.Sprint(subject, n))
	}
	return listed, nil
}

// The limits are for an image with all that is in its index: beyond them it is not known whether it is signed.
func TestLimitsAreForTheWholeImage(t *testing.T) {
	image := store.Image{Top: v1.Descriptor{Digest: digest.FromString("top")}}
	for n := range 100 {
		image.Instances = append(image.Instances, v1.Descriptor{Digest: digest.FromString(fmt.Sprint(n))})
	}
	r := &endless{}
	report, err := signature.VerifyOptions{Keys: publicKey(t, "p256")}.Verify(t.Context(), r, image)
	if !errors.Is(err, fault.ErrLimit) || report != nil {
		t.Errorf("%v", err)
	}
	if asked := r.asked.Load(); asked > 10_010 {
		t.Errorf("%d requests", asked)
	}
}
