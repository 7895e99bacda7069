package graphimage

// CopyMembers is for fuzzing.
var CopyMembers = copyMembers
