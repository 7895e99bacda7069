package graph_test

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
)

// The upgrade graph of a package in the language of Graphviz.
func ExampleOptions_WriteDOT() {
	const text = `schema: olm.package
name: etcd
defaultChannel: stable
---
schema: olm.channel
package: etcd
name: stable
entries:
- name: etcd.v1.1.0
  replaces: etcd.v1.0.0
- name: etcd.v1.0.0
`
	catalog, err := declcfg.Read(context.Background(), strings.NewReader(text), "catalog.yaml", declcfg.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	if err := (graph.Options{Package: "etcd"}).WriteDOT(os.Stdout, catalog); err != nil {
		log.Fatal(err)
	}
	// Output:
	// digraph upgrades {
	//   label="Upgrade graph of etcd";
	//   labelloc=t;
	//   rankdir=BT;
	//   compound=true;
	//   graph [fontname="sans-serif"];
	//   node [shape=box, style=rounded, fontname="monospace", fontsize=11];
	//   edge [fontname="sans-serif", fontsize=9];
	//   subgraph cluster_0 {
	//     label="etcd";
	//     subgraph cluster_0_0 {
	//       label="stable (default)";
	//       n0_0_0 [label="etcd.v1.1.0", tooltip="channel stable\netcd.v1.1.0 (head)\nreplaces etcd.v1.0.0", penwidth=3];
	//       n0_0_1 [label="etcd.v1.0.0", tooltip="channel stable\netcd.v1.0.0"];
	//     }
	//     n0_0_1 -> n0_0_0 [tooltip=replaces];
	//   }
	// }
}
