// Package sbom writes software bills of materials of images: SPDX 2.3 and CycloneDX 1.6 as JSON.
//
// A document is a function of the [Inventory] and its [Options]: nothing in it depends on the time, the machine or
// chance. Its identifiers are derived from the digest of the image that it describes.
package sbom
