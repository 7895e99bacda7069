// Package hostile attacks the finished program from outside: with hostile catalogs, databases, layouts, registries and
// clients, full disks, failing system calls, kills at any moment. "make hostile" runs the tests;
// docs/explain/security.md lists the cases.
//
// They have the build tag "hostile" because some need root, strace, setpriv or a registry program. If one of these is
// missing, its tests are skipped with a message.
package hostile
