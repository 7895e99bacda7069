// Package imagestore reads and writes images in the stores that podman, buildah and CRI-O share
// (containers-storage(7)). Only on Linux, and not in builds with the tag nobuildah.
//
// A store is opened when it is needed and released after that, since its driver may keep a mount as long as it is open.
// An [Output] is complete in the store before it gets its name. What a run that was killed has added is removed by the
// next run.
package imagestore
