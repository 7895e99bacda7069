package unpackjob

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.podman.io/image/v5/docker/reference"
	"k8s.io/apimachinery/pkg/util/validation"
)

// normalize fills in defaults, and refuses what Kubernetes would refuse.
func (o *Options) normalize() error {
	o.OpmImage = cmp.Or(o.OpmImage, DefaultOpmImage)
	o.UtilImage = cmp.Or(o.UtilImage, DefaultUtilImage)
	var errs []error
	for _, i := range []struct{ what, name string }{{"bundle image", o.Image}, {"opm image", o.OpmImage},
		{"util image", o.UtilImage}} {
		if _, err := reference.ParseNormalizedNamed(i.name); err != nil {
			errs = append(errs, fmt.Errorf("%s %.300q: %w", i.what, i.name, err))
		}
	}
	check := func(what, name string, rule func(string) []string) {
		if wrong := rule(name); len(wrong) > 0 {
			errs = append(errs, fmt.Errorf("%s %.100q: %s", what, name, strings.Join(wrong, ", ")))
		}
	}
	check("namespace", o.Namespace, validation.IsDNS1123Label)
	if o.ServiceAccount != "" {
		check("service account", o.ServiceAccount, validation.IsDNS1123Subdomain)
	}
	for _, s := range o.PullSecrets {
		check("pull secret", s, validation.IsDNS1123Subdomain)
	}
	if o.Owner != nil {
		check("catalog source", o.Owner.Name, validation.IsDNS1123Subdomain)
		if o.Owner.UID == "" {
			errs = append(errs, errors.New("the catalog source has no UID: a cluster knows an owner by it"))
		}
	}
	if o.Timeout < 0 || o.Timeout > 0 && o.Timeout < time.Second {
		errs = append(errs, fmt.Errorf("timeout %v: it is 0 or at least a second", o.Timeout))
	}
	if o.User < 0 || o.User > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("user %d: it is a number between 0 and %d", o.User, math.MaxInt32))
	}
	return errors.Join(errs...)
}
