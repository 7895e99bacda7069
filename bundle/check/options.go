package check

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// defaultTimeout is how long the validators of one bundle may take.
const defaultTimeout = 20 * time.Second

// Options configure [Run]. The zero value runs the checks that opm runs by default, and those that opm lacks.
type Options struct {
	// Select are the names of optional validators, of [Validators].
	Select []string
	// KubernetesVersion is the version for which removed APIs are errors, such as "1.25"; empty takes the bundle's
	// own lowest version. Only optional validators look at it.
	KubernetesVersion string
	// Labels are those of the image that the bundle is in.
	Labels map[string]string
	// Plain checks the bundle as plain+v0, whatever media type it declares.
	Plain bool
	// Strict turns warnings into errors.
	Strict bool
	// Timeout bounds the time of one bundle; 20 seconds if 0. A check that has not finished by then is an error of the
	// bundle.
	Timeout time.Duration
	// Jobs is the number of checks that run concurrently; 1 if it is less.
	Jobs int
}

// ErrUnknownValidator is wrapped by the error of [Run] for a name that [Validators] does not have.
var ErrUnknownValidator = errors.New("unknown validator")

// checkNames refuses names of validators that do not exist.
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
