package app

// What tests of the package use from outside of it.
var ManSections = manSections
