// Package site builds the documentation site (build.sh) and tests its links. It is a module of its own for hugo, whose
// dependencies would move the versions of those of the program.
package site
