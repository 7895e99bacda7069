package catalogdir

import "github.com/operator-bindery/bindery/internal/filetx"

// StagePrefix begins the names of what an edit makes in the directory.
const StagePrefix = filetx.Prefix

// AtStep lets a test look at every step of an edit.
func (d *Dir) AtStep(at func(step string)) { d.hooks.Step = at }

// WithoutLinks edits as on a file system without hard links.
func (d *Dir) WithoutLinks() { d.hooks.NoLinks = true }
