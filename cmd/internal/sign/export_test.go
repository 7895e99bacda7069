package sign

import "github.com/operator-bindery/bindery/images/store"

// What tests of the package use from outside of it.
var OpenAttached = openAttached

// ImageOf returns the image of which something is attached at a place.
func ImageOf(at *attached) store.Image { return at.image }
