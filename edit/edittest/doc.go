// Package edittest has helpers for tests of edits: a notation for catalogs and additions, random additions, and the
// recorded sequences of opm's commands.
//
// Catalogs are written as lines of the form
//
//	PACKAGE/CHANNEL: VERSION >REPLACES !SKIPS ~SKIPRANGE, VERSION ...
//	PACKAGE = DEFAULTCHANNEL
//	PACKAGE ? CHANNEL-OR-VERSION MESSAGE...
//
// The bundle of version V of a package P is P.vV, with the image img/P:V.
package edittest
