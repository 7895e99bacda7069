package mirror

import "sync"

// progress counts what is done and reports it, one event at a time.
type progress struct {
	sync.Mutex
	events func(Event)
	Event
}

// add changes the sums and reports them.
func (p *progress) add(change func(*Event)) {
	p.Lock()
	defer p.Unlock()
	change(&p.Event)
	if p.events != nil {
		p.events(p.Event)
	}
	p.Image, p.Status, p.Err = "", "", nil
}
