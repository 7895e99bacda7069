package safety

// Worded is message for tests.
var Worded = message

// NewDefinition is exported for tests.
var NewDefinition = newDefinition
