package serve

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
)

// acknowledgeHeader must be "true" in the request: the client accepts that the method may be removed.
const acknowledgeHeader = "x-acknowledge-experimental"

func (r *registry) listPackageCustomSchemas(ctx context.Context, c *catalog,
	req *api.ExperimentalListPackageCustomSchemasRequest, send func(answer) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if !slices.Contains(md.Get(acknowledgeHeader), "true") {
		return nil
	}
	switch {
	case req.GetSchema() == "":
		return status.Error(codes.InvalidArgument, "schema must be set")
	case !isCustomName(req.GetSchema()):
		return status.Errorf(codes.InvalidArgument, "invalid schema %q", req.GetSchema())
	case req.GetPackageName() != "" && !isCustomName(req.GetPackageName()):
		return status.Errorf(codes.InvalidArgument, "invalid package name %q", req.GetPackageName())
	}
	p, ok := c.customs[req.GetPackageName()]
	if !ok {
		return nil
	}
	for _, custom := range p.customs {
		if custom.schema != req.GetSchema() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		a, err := r.reader.read(ctx, p, nil, custom.record)
		if err != nil {
			return err
		}
		if err := send(a); err != nil {
			return err
		}
	}
	return nil
}

// isCustomName implements opm's rule for names of custom blobs: letters, digits, dot, underscore and hyphen, beginning
// with a letter or digit.
func isCustomName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}
