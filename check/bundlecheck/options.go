package bundlecheck

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// defaultTimeout is the time limit for the validators of one bundle.
const defaultTimeout = 20 * time.Second

// Options configure a check. The zero value checks what opm checks by default, and more.
type Options struct {
	// Select are the names of optional validators, see [Validators].
	Select []string
	// KubernetesVersion is the version for which removed APIs are errors, such as "1.25"; empty means the bundle's own
	// minimum version. Only optional validators use it.
	KubernetesVersion string
	// IndexPath is a Dockerfile of the bundle, in which the validator "community" looks for the label of OpenShift versions.
	IndexPath string
	// Labels are those of the bundle's image.
	Labels map[string]string
	// OLMv1 warns of everything that OLM v1 refuses on a cluster with cert-manager and default gates.
	OLMv1 bool
	// OPM makes everything an error that is one for opm, also where OLM takes the bundle.
	OPM bool
	// SDK makes everything an error that is one for operator-sdk, which runs the library's validator of bundles, too. What
	// only clusters refuse of the schemas of definitions is left out, and so is the size of a bundle that fits.
	SDK bool
	// Plain checks the bundle as plain+v0, whatever it declares.
	Plain bool
	// Strict turns warnings into errors.
	Strict bool
	// Timeout is the time limit for one bundle; 20 seconds if 0. What is not checked by then is an error of the
	// bundle.
	Timeout time.Duration
	// Jobs bounds concurrent work; 1 if it is less.
	Jobs int
}

// ErrUnknownValidator is wrapped by the error of [Run] for a name that is not in [Validators].
var ErrUnknownValidator = errors.New("unknown validator")

// checkNames refuses unknown names of validators.
func (o Options) checkNames() error {
	var known []string
	for _, v := range Validators() {
		known = append(known, v.Name)
	}
	for _, name := range o.Select {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w %q, expected one of %q", ErrUnknownValidator, name, known)
		}
	}
	return nil
}
