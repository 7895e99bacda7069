package main

import (
	"strings"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
)

// transports are those of every command.
var transports = library.Transports(images.BuiltIn())

// forms returns how images on this machine are named: transports of the table, from one number to another.
func forms(from, to int) string {
	var all []string
	for _, t := range transports {
		if t.Parse != nil {
			all = append(all, t.Form)
		}
	}
	return strings.Join(all[from:min(to, len(all))], ", ")
}

// outputTransports lists the prefixes of destinations, those in files first.
func outputTransports() string {
	var files, others []string
	for _, t := range transports {
		if t.Files {
			files = append(files, t.Prefix())
		} else {
			others = append(others, t.Prefix())
		}
	}
	return strings.Join(append(files, others...), ", ")
}
