// Package signature signs images and verifies signatures and attestations, with keys, without any service.
//
// A signature has two forms:
//
//   - a layer of the manifest with the tag sha256-HEX.sig: a payload ("simple signing") that names the image by its
//     digest and by an identity, REPOSITORY:TAG. Policies of the containers tools (policy.json) read this form alone;
//   - a Sigstore bundle v0.3 as a referrer of the image: an in-toto statement about the digest, in a DSSE envelope. It
//     has no identity. cosign 3 writes and prefers this form.
//
// An attestation is a statement with another predicate than that of a signature. It never counts as a signature.
//
// Everything that a signature contains comes from outside: sizes and counts have limits, members of JSON objects have
// one spelling and occur once, and what is not signed (hints, annotations, times) is not a fact.
//
// Signatures by an identity, with a key that lives as long as the run, are made and verified by package keyless, which
// implements [Certified] and [Identities]. Tokens (PKCS#11), key services and GPG are not used. [Signer] is what another
// kind of key would implement.
package signature
