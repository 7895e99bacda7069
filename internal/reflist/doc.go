// Package reflist has the form of lists of referrers (distribution specification, "Listing Referrers"): the descriptor
// by which a list names a manifest, the tag of the list where a registry has no API for it, and its text.
package reflist
