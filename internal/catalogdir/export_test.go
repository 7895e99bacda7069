package catalogdir

// StagePrefix begins the names of what an edit makes in the directory.
const StagePrefix = stagePrefix

// AtStep lets a test look at every step of an edit.
func (d *Dir) AtStep(at func(step string)) { d.steps.at = at }

// ByJournal puts files in place one by one, as where directories cannot be exchanged.
func (d *Dir) ByJournal() { d.steps.byJournal = true }

// ByRename does not exchange files either, as on systems that cannot.
func (d *Dir) ByRename() { d.steps.byRename = true }
