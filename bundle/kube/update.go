package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrMissing is returned for a ConfigMap that does not exist.
var ErrMissing = errors.New("the ConfigMap must exist")

const (
	attempts   = 5
	firstDelay = 10 * time.Millisecond
)

// Update changes an existing ConfigMap. If it was changed in the meantime, change is applied again to the new version,
// up to five times in all.
func (c *Client) Update(ctx context.Context, namespace, name string, change func(*corev1.ConfigMap)) error {
	delay := firstDelay
	for n := 1; ; n++ {
		cm, err := c.get(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", ErrMissing, err)
		}
		if err != nil {
			return err
		}
		change(cm)
		if err = c.put(ctx, namespace, name, cm); !apierrors.IsConflict(err) || n == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(delay):
			delay *= 2
		}
	}
}
