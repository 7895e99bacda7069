// Package libimage is the edge to the containers image library: it offers a place of images to the library as a
// [types.ImageReference], and has the library copy it.
package libimage
