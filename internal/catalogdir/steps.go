package catalogdir

// steps is for tests, which look at the directory, or end the process, at each step of an edit.
type steps struct {
	at func(step string)
	// byJournal never exchanges directories, as if the file system could not.
	byJournal bool
	// byRename does not exchange files either.
	byRename bool
}

func (d *Dir) step(name string) {
	if d.steps.at != nil {
		d.steps.at(name)
	}
}
