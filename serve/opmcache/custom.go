package opmcache

import (
	"fmt"
	"regexp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/declcfg"
)

// customName matches what opm allows as schema and as package of custom blobs. opm builds no cache of a catalog with
// any other name.
var customName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

func checkCustom(m *declcfg.Meta) error {
	if !customName.MatchString(m.Schema) || m.Package != "" && !customName.MatchString(m.Package) {
		return fmt.Errorf(
			"blob of schema %.100q, package %.100q: opm's caches allow letters, digits, '.', '_' and '-' in these "+
				"names; use --cache native, or change them", m.Schema, m.Package)
	}
	return nil
}

// customMessage returns the message that is sent for a blob.
func customMessage(blob []byte) ([]byte, error) {
	var s structpb.Struct
	if err := s.UnmarshalJSON(blob); err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&s)
}
