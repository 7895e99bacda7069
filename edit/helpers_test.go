package edit_test

import "github.com/operator-bindery/bindery/edit/edittest"

const registry = edittest.Registry

// Short names for helpers of package edittest.
var (
	catalog         = edittest.Catalog
	show            = edittest.Show
	addition        = edittest.Addition
	additionsOf     = edittest.Additions
	newBundle       = edittest.NewBundle
	imageName       = edittest.ImageName
	randomAdditions = edittest.RandomAdditions
	names           = edittest.Names
	databaseOf      = edittest.DatabaseOf
	lines           = edittest.Lines
	differences     = edittest.Differences
)
