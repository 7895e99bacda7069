package filter

import (
	"slices"

	"github.com/operator-bindery/bindery/edit"
)

// Without returns the result less some bundles: their edges are joined as [edit.LeaveOut] does, and the account lists
// the packages that differ from the source.
func (r *Result) Without(bundles []edit.Name, why string) (*Result, error) {
	c, account, err := edit.LeaveOut(r.Catalog, bundles, why)
	if err != nil {
		return nil, err
	}
	out, all := *r, *r.Account
	all.Changes = append(slices.Clip(all.Changes), account.Changes...)
	out.Catalog, out.Account, out.WholeCatalog = c, &all, false
	out.Kept, out.Images, out.Others = describeKept(c), images(c.Bundles), len(c.Others)
	return &out, nil
}
