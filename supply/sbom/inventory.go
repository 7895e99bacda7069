package sbom

import (
	"time"

	"github.com/opencontainers/go-digest"
)

// Inventory is what is known about the contents of one image, or of an index and its images.
type Inventory struct {
	// Image is the subject of the document.
	Image Image
	// Contents are those of a single image; an index has them in Instances.
	Contents Contents
	// Instances are the images of an index.
	Instances []Instance
	// Packages are those of a catalog, sorted by name, and each one's bundles sorted by name.
	Packages []Package
	// Operator is that of a bundle image; nil if the image has none.
	Operator *Operator
	// alone means that the program is no part of an image: it is the subject itself.
	alone bool
}

// OfProgram returns the inventory of a program that is in no image.
func OfProgram(p *Program) *Inventory {
	return &Inventory{Image: Image{Digest: p.Digest}, Contents: Contents{Program: p}, alone: true}
}

// Image identifies an image.
type Image struct {
	// Name is the repository with its registry and without a tag; empty if it is not known.
	Name   string
	Digest digest.Digest
	// Architecture is that of an image of an index, as Go calls it; empty means that it is not written.
	Architecture string
}

// Instance is one image of an index.
type Instance struct {
	Image
	Contents
}

// Contents are the parts of the image of one platform that a catalog does not name.
type Contents struct {
	// Program is the server of a catalog image; nil if there is none that could be read.
	Program *Program
	// Layers are those whose files are not described, such as the layers of a base image.
	Layers []Layer
}

// Layer is a layer of an image.
type Layer struct {
	Digest    digest.Digest
	MediaType string
}

// Package is an operator's package in a catalog.
type Package struct {
	Name, DefaultChannel string
	Bundles              []Bundle
}

// Bundle is one version of an operator in a catalog.
type Bundle struct {
	Name, Version string
	Image         Reference
	Related       []Reference
}

// Operator is the ClusterServiceVersion of a bundle image.
type Operator struct {
	Name, Version, Package string
	Related                []Reference
}

// Reference is an image that another image names.
type Reference struct {
	// Role is the name of a related image, such as "manager"; it may be empty.
	Role string
	// Text is the reference as it is written. The other fields are empty if it is no reference of an image.
	Text string
	// Name is the repository with its registry.
	Name string
	// Tag and Digest may be empty. What a tag refers to is not known.
	Tag    string
	Digest digest.Digest
}

// Program is an executable file that was built from Go modules.
type Program struct {
	// Path is that of the file in the image.
	Path   string
	Digest digest.Digest
	// Main is the path of the main module and Version its version; either may be empty. Assumed means that the version
	// is not recorded in the program.
	Main, Version string
	Assumed       bool
	// Go is the version of the standard library, such as "1.26.8".
	Go      string
	Modules []Module
}

// Module is a Go module of a program: the one that was linked, if it replaces another.
type Module struct {
	Path, Version string
	// Sum is the hash in go.sum, of a tree of files ("h1:..."); it is the SHA-256 of no file.
	Sum string
	// Replaces is the path of the module that this one replaces. Local means that it is replaced by a directory whose
	// content is not known.
	Replaces string
	Local    bool
}

// Options are what a document says besides the inventory.
type Options struct {
	// Version is that of bindery.
	Version string
	// Created is the time of the document; zero is 1970-01-01T00:00:00Z.
	Created time.Time
}

// created returns the time as SPDX and CycloneDX write it, in whole seconds.
func (o Options) created() string {
	t := o.Created
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}
