package images

import (
	"fmt"

	"go.podman.io/image/v5/signature"
)

// AssembledTransport is the name of the transport of images that this module assembles itself.
const AssembledTransport = "bindery"

// assembledPolicy accepts images that were assembled here, which nobody can have signed, and nothing else. So no
// policy.json is needed, and none can be circumvented with it.
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
