package images

import (
	"fmt"

	"go.podman.io/image/v5/signature"
)

// AssembledTransport is the name of the transport of images that this module assembles.
const AssembledTransport = "bindery"

// assembledPolicy accepts only images that this module assembles, which are not signed yet. So no policy.json is
// needed, and none can be circumvented.
func assembledPolicy() *signature.Policy {
	return &signature.Policy{
		Default: signature.PolicyRequirements{signature.NewPRReject()},
		Transports: map[string]signature.PolicyTransportScopes{
			AssembledTransport: {"": signature.PolicyRequirements{signature.NewPRInsecureAcceptAnything()}},
		},
	}
}

func newPolicyContext(p *signature.Policy) (*signature.PolicyContext, error) {
	if p == nil {
		p = assembledPolicy()
	}
	pc, err := signature.NewPolicyContext(p)
	if err != nil {
		return nil, fmt.Errorf("signature policy: %w", err)
	}
	return pc, nil
}
