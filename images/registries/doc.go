// Package registries has the repositories of registries as places of images ([store.Writer]), as those that images are
// mirrored to, and the configuration, the limits and the errors that package images has for registries as well.
package registries
