// Package imagemap maps the images of a catalog to another registry and writes the mapping in the formats of other
// programs: lines for programs that copy images, and configurations for those that pull them.
//
// It copies nothing and uses no network.
package imagemap
