// Package sigstore signs and verifies by identity with the servers that others have written: Fulcio, a Rekor log of tiles
// and a timestamp authority, and compares the program with cosign.
//
// Its tests start the servers on loopback, with an OpenID issuer and registries of their own; a proxy before each server
// records what is sent to it. What would go anywhere else meets a proxy that refuses, and fails the test. The trusted root
// and the signing configuration are made by cosign, as for a private instance; there is no log of certificates.
//
// The module is of its own, as the servers need other versions of modules than the program. "make sigstore" runs it;
// $BINDERY names the program, $FULCIO, $REKOR, $TIMESTAMP_SERVER and $COSIGN name the others.
package sigstore
