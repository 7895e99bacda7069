// Package cmdline holds what a command line needs around its commands: parsing an argument list so that flags may stand
// anywhere, suggestions for misspelled names, help, manual page and completion made from one command tree, errors with
// a class, text that is safe to show on a terminal, signals, and an answer that reaches standard output whole or not at
// all.
//
// Nothing here prints by itself or ends the process: the writers are parameters, the exit status is a return value.
package cmdline
