// Package edit changes catalogs: functions on the model, whichever way a catalog came in and wherever it goes. It never
// reads or writes anything.
package edit
