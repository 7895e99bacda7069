package safety

// Worded is message for tests.
var Worded = message
