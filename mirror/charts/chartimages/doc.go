// Package chartimages finds images in what charts render to.
//
//	Find  the images of a chart's manifests, with the object and the path where each was found
package chartimages
