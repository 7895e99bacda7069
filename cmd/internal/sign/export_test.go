package sign

// What tests of the package use from outside of it.
var OpenAttached = openAttached
