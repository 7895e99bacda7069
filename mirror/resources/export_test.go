package resources

// ParseTemplate is parseTemplate.
var ParseTemplate = parseTemplate
