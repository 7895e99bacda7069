package heaptest

import (
	"fmt"
	"strings"
	"testing/fstest"
)

// Many returns a valid catalog of many small packages, each in a separate file, with one bundle that is in all
// channels.
func Many(packages, channels int) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := range packages {
		pkg := fmt.Sprintf("p%06d", i)
		var b strings.Builder
		fmt.Fprintf(&b, "---\nschema: olm.package\nname: %s\ndefaultChannel: c0\n", pkg)
		for c := range channels {
			fmt.Fprintf(&b, "---\nschema: olm.channel\npackage: %s\nname: c%d\nentries:\n- name: %s.v1\n", pkg, c, pkg)
		}
		fmt.Fprintf(&b,
			"---\nschema: olm.bundle\nimage: q.io/%s:v1\nname: %s.v1\npackage: %s\nproperties:\n- type: "+
				"olm.package\n  value:\n    packageName: %s\n    version: 1.0.0\n",
			pkg, pkg, pkg, pkg)
		fsys[pkg+"/catalog.yaml"] = &fstest.MapFile{Data: []byte(b.String())}
	}
	return fsys
}
