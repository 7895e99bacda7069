package rootless

// What tests of the package use from outside of it.
var NamesStore = namesStore
