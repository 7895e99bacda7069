package generate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// compare returns an error for every annotation that is missing in existing or has another value there, sorted by key.
// Additional annotations in existing are allowed.
func (m Metadata) compare(existing map[string]string) error {
	var errs []error
	want := m.Map()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := existing[key]
		switch {
		case !ok:
			//lint:ignore ST1005 opm's text
			errs = append(errs, fmt.Errorf("Missing field: %s", key))
		case value != want[key]:
			//lint:ignore ST1005 opm's text
			errs = append(errs, fmt.Errorf("Expect field %q to have value %q instead of %q", key, want[key], value))
		}
	}
	return errors.Join(errs...)
}
