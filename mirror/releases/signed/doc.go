// Package signed finds and verifies the signatures of releases, which say which image a release is and how it is named.
//
//	WD/signatures, or a server ──Find──> OpenPGP message ──Keys──> statement ──> [Signature]
//
// A signature is an OpenPGP message (RFC 4880, section 11.3): a one-pass signature, a text and the signature,
// compressed or not. The text is a statement in the form of the containers tools, container-signature(5): the digest of
// an image and the reference that it stands for. Nothing of a message is used before its end was read and its signature
// verified.
//
// The package writes no files and copies no images. Everything in it is safe for concurrent use.
package signed
