package inspect

// Exports for tests: what a difference is about.
const (
	AboutAnnotation = aboutAnnotation
	AboutCache      = aboutCache
	AboutCatalog    = aboutCatalog
	AboutConfig     = aboutConfig
	AboutDatabase   = aboutDatabase
	AboutIndex      = aboutIndex
	AboutLabel      = aboutLabel
	AboutLayer      = aboutLayer
	AboutMode       = aboutMode
	AboutServer     = aboutServer
)

type (
	Subject    = subject
	Difference = difference
)
