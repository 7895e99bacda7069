// Package keyless signs by an identity in place of a key of one's own, and verifies such signatures, with Sigstore's
// services: a certificate authority (Fulcio) certifies a key that is made for the run for the identity of an OpenID
// Connect token, and a transparency log (Rekor) or a timestamp authority (RFC 3161) proves when the key signed.
//
// [Signer] implements [signature.Certified], and [Verifier] implements [signature.Identities]. What is trusted is in a
// trusted root: a file (trusted_root.json), or that of the public instance, which The Update Framework keeps current.
//
// The formats are those of https://github.com/sigstore/protobuf-specs: Bundle, TrustedRoot, SigningConfig.
package keyless
