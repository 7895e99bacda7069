// Package hostile holds tests that attack the finished program from outside: hostile catalogs, databases, layouts,
// registries and clients, full disks, failing calls, kills at any moment. "make hostile" runs them; docs/security.md
// lists the cases.
//
// They are behind the build tag "hostile" because some need root, strace, setpriv or a registry program. Where one of
// these is missing, its tests say so and are skipped.
package hostile
