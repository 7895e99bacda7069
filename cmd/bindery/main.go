// Command bindery binds operator bundles into catalogs and catalogs into images.
//
// Started as opm it is a drop-in replacement for opm: the same commands and flags, with opm's format of errors and
// logs, and started as oc-mirror it takes that program's. Started as grpc_health_probe it is a health probe; started as
// initializer or registry-server it is opm's former tool of that name.
package main

import "github.com/operator-bindery/bindery/cmd/internal/app"

func main() { app.Main() }
