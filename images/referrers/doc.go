// Package referrers reads and writes what is attached to an image: manifests whose subject it is (distribution
// specification, "Listing Referrers"), and the tags that cosign derives from its digest.
//
// An image has two kinds of attachments:
//
//   - referrers: manifests with a subject, found by the referrers API of a registry, by the fallback tag sha256-HEX, or
//     in the index.json of a layout;
//   - tagged attachments: sha256-HEX.sig (signatures) and sha256-HEX.att (attestations).
//
// Lists of referrers are hints: every manifest is fetched by its digest, and its subject is compared with the image.
package referrers
