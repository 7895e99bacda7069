package resolve

import (
	"errors"

	"github.com/operator-bindery/bindery/olmv1"
)

// Validate returns what an API server refuses of a request: the name of the package, the channels and the constraint
// are fields of a ClusterExtension with limits and patterns. The error has the API server's text for each field.
// [Resolver.Resolve] answers like operator-controller's resolver, which such a request never reaches, and does not
// call it.
func (q *Request) Validate() error {
	return errors.Join(olmv1.PackageName(q.Package), olmv1.Version(q.Version), olmv1.Channels(q.Channels))
}
