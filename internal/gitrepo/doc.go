// Package gitrepo reads from a git repository what a pull request would change, without starting git: the merge base of a
// revision and HEAD, its files, and the changes from it to the work tree. It also reads lists of changes, and compares
// two directories.
package gitrepo
