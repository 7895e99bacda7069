package signature

import "github.com/operator-bindery/bindery/internal/fault"

// The errors that a caller decides on.
var (
	// ErrPassphrase is the error of an encrypted key that the passphrase does not open.
	ErrPassphrase = fault.New(fault.Input, "the passphrase does not open the key")
	// ErrPlainKey is the error of a key that is not encrypted and was not allowed to be.
	ErrPlainKey = fault.New(fault.Input, "the key is not encrypted")
	// ErrNotVerified is the error of a signature that was just made and that no verifier would accept.
	ErrNotVerified = fault.New(fault.Input, "what was signed is refused by verifiers")
	// ErrNoIdentity is the error of a signature in a .sig tag for an image without a name in a registry.
	ErrNoIdentity = fault.New(fault.Usage, "the image has no name in a registry that a signature could be for")
)
