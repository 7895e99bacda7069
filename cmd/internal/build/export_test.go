package build

// What tests of the package use from outside of it.
type Composition = composition
