// Package cmdline has the parts of a command-line program around its commands: parsing with flags anywhere in the line,
// suggestions for misspelled names, help, manual page and completion from one command tree, errors with a class, text
// that is safe for terminals, signals, and output that is written completely or not at all.
//
// Nothing here prints by itself or exits: writers are parameters, the exit status is a return value.
package cmdline
