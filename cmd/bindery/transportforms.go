package main

import (
	"strings"

	"github.com/operator-bindery/bindery/images"
)

// forms returns how images of transports are named, as the table has it.
func forms(of ...images.Transport) string {
	var all []string
	for _, t := range images.BuiltIn() {
		for _, wanted := range of {
			if t.Name == wanted {
				all = append(all, t.Form)
			}
		}
	}
	return strings.Join(all, ", ")
}

// outputTransports lists the prefixes of destinations, those in files first.
func outputTransports() string {
	var files, others []string
	for _, t := range images.BuiltIn() {
		if t.Files {
			files = append(files, t.Prefix())
		} else {
			others = append(others, t.Prefix())
		}
	}
	return strings.Join(append(files, others...), ", ")
}
