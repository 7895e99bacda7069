package program

import (
	"strings"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/library"
)

// Transports are those of every command.
var Transports = library.Transports(images.BuiltIn())

// Forms returns how images on this machine are named: transports of the table, from one number to another.
func Forms(from, to int) string {
	var all []string
	for _, t := range Transports {
		if t.Parse != nil {
			all = append(all, t.Form)
		}
	}
	return strings.Join(all[from:min(to, len(all))], ", ")
}

// OutputTransports lists the prefixes of destinations, those in files first.
func OutputTransports() string {
	var files, others []string
	for _, t := range Transports {
		if t.Files {
			files = append(files, t.Prefix())
		} else {
			others = append(others, t.Prefix())
		}
	}
	return strings.Join(append(files, others...), ", ")
}
