package safety

// Message is message for tests.
var Message = message
