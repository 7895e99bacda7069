package mirror

// IsAbsent is isAbsent.
var IsAbsent = isAbsent
