// A module of its own: it starts programs to measure them, which nothing in bindery's module may do.
module github.com/operator-bindery/bindery/hack/bench

go 1.26
