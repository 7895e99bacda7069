// Package libimage is the edge to the containers image library: it offers a place of images to the library as a
// [types.ImageReference], and an image that the library has opened as a [store.Reader].
package libimage
