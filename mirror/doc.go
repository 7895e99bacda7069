// Package mirror copies operators across an air gap: the catalogs of an image set, filtered, with the bundles and
// related images that they name, the images of charts, additional images, and the signatures and referrers of all of them.
//
// There are three directions ([Mode]): from registries to a registry, from registries to a medium, and from a medium to
// a registry. All follow the same steps, which run.go has one after the other, and each of which has a file:
//
//	collect       image set ──> collection: the catalogs, filtered, and a list of images  (collect.go, collectreleases.go, collectcharts.go)
//	check         collection ──> each image with its destination, or a conflict           (destinations.go)
//	decide        image ──> it is there, or what is to be copied, or why it cannot be      (decide.go)
//	transfer      images ──> what became of each                                          (transfer.go)
//	  or find     images that other runs have copied ──> what became of each              (lookfor.go)
//	settle        catalog ──> the catalog without the bundles whose images are missing    (incomplete.go)
//	publish       catalog ──> its image at the target                                     (publish.go, graphimage.go)
//	write         archive, files for clusters, record of what was mirrored                (writearchive.go, results.go)
//
// An image of every kind is an item (item.go): those of catalogs and of the graphs are built when all that they name is
// settled, of others the source is opened; all are decided on, copied and noted by the same functions. A dry run decides
// as a run does, and measures in place of copying (forecast.go). [VerifyOptions.Verify] and [DeleteOptions.Delete] start
// from what runs have published.
//
// Related images, additional images and bundles are copied first. A catalog is built and published when all that it
// names is there: bundles whose images are not available are taken out of it, or it is not published, as [OnMissing]
// says. What is published is valid, and its digest depends on the source and the filter only.
//
// A run can be repeated at any time: what the destination has is not sent again. Names, files of the workspace and
// archives are those of oc-mirror v2 where other programs read them; docs/guides/mirror.md has what differs and why.
package mirror
