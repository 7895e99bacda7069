// Package storetest checks that a place of images does what package store says, as testing/fstest checks file systems,
// and has a place in memory.
//
// The test of a place is one call: [TestReader] for one that is read, with the names of images that are there, and
// [TestWriter] for one that is written, with a function that makes empty ones. [TestKilled] is for places in files: it
// kills a process at each step of writing. What a place does beyond every place is checked as far as its
// [store.Abilities] and the fields of [Place] say that it does it.
package storetest
