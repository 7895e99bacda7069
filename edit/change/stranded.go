package change

import (
	"cmp"
	"context"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// PruneStranded returns an edit that removes bundles which are in no channel: from a file-based catalog as
// edit.PruneStranded does, from a database by writing its catalog, which does not contain them.
func PruneStranded() Edit {
	e := Edit{Whole: []string{}}
	e.Apply = func(_ context.Context, s *State) (*declcfg.Catalog, *edit.Account, error) {
		after, account, err := edit.PruneStranded(s.Catalog)
		if err != nil {
			return nil, nil, err
		}
		for _, b := range s.Stranded {
			account.Changes = append(account.Changes,
				edit.Change{Action: edit.Removed, Kind: edit.KindBundle, Package: b.Package, Bundle: b.Name,
					From: b.Image,
					Why:  "it is in no channel"})
		}
		slices.SortStableFunc(account.Changes, func(x, y edit.Change) int {
			return cmp.Or(cmp.Compare(x.Package, y.Package), cmp.Compare(x.Channel, y.Channel),
				cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Bundle, y.Bundle))
		})
		return after, account, nil
	}
	return e
}
