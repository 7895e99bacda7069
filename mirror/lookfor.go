package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/stock"
)

// lookFor looks whether the images are at the target, and copies none: what other runs have copied is not known here.
func (r *run) lookFor(ctx context.Context, list []*item) error {
	if r.o.Mode == ToDisk {
		return fmt.Errorf("%w: catalogs are published at a registry", fault.ErrInvalid)
	}
	byName := map[string][]*item{}
	for _, i := range list {
		if i.account.Status != Blocked {
			name := i.destination.Repository() + ":" + i.destination.Tag
			byName[name] = append(byName[name], i)
		}
	}
	r.progress.add(func(e *Event) { e.AllImages = len(byName) + r.toPublish() })
	wanted := func(yield func(stock.Wanted) bool) {
		for _, i := range list {
			if i.account.Status != Blocked && !yield(stock.Wanted{Repository: i.destination.Repository(),
				Name: i.destination.Tag, Digest: i.source.Digest, Platforms: i.platforms}) {
				return
			}
		}
	}
	at := func(name string) (stock.Repository, error) { return r.o.Remote.Repository(name) }
	_, err := stock.Check(ctx, at, wanted, stock.CheckOptions{ManifestsOnly: true, Jobs: max(r.o.Jobs, 8),
		Done: func(f stock.Finding) {
			for _, i := range byName[f.Repository+":"+f.Name] {
				i.account.Status, i.account.Digest = Present, f.Found
				if len(f.Problems) > 0 {
					var texts []string
					for _, p := range f.Problems {
						texts = append(texts, p.Error())
					}
					i.fail(errors.New("not at the target: " + strings.Join(texts, "; ")))
				}
			}
			r.progress.add(func(e *Event) { e.Images++ })
		}})
	return err
}
