// Package imagemap maps the images of a catalog to another registry, and writes the mapping in the forms in which other
// programs read it: lines for those that copy images, and configurations for those that pull them.
//
// It copies nothing and uses no network.
package imagemap
