package opmcache

import (
	"fmt"
	"regexp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/declcfg"
)

// customName is what opm allows as the schema and as the package of blobs of custom schemas. One blob with another name and
// opm builds no cache of the catalog at all.
var customName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

func checkCustom(m *declcfg.Meta) error {
	if !customName.MatchString(m.Schema) || m.Package != "" && !customName.MatchString(m.Package) {
		return fmt.Errorf("blob of schema %.100q, package %.100q: opm's caches allow letters, digits, '.', '_' and '-' in these names; use --cache native, or change them", m.Schema, m.Package)
	}
	return nil
}

// customMessage is a blob as the message that is sent for it.
func customMessage(blob []byte) ([]byte, error) {
	var s structpb.Struct
	if err := s.UnmarshalJSON(blob); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&s)
}
