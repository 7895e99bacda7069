package catalogdir

import "github.com/operator-bindery/bindery/internal/filetx"

// StagePrefix is the prefix of temporary names that an edit creates in the directory.
const StagePrefix = filetx.Prefix

// AtStep sets a function that is called at every step of an edit.
func (d *Dir) AtStep(at func(step string)) { d.hooks.Step = at }

// WithoutLinks simulates a file system without hard links.
func (d *Dir) WithoutLinks() { d.hooks.NoLinks = true }
