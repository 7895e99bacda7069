//go:build unix

package serve_test

import (
	"net"
	"os"
	"syscall"
)

func systemDamages() []damage {
	remove := func(s *scene) { s.t.Helper(); s.must(os.Remove(s.path("a.cache"))) }
	list := []damage{
		{"FIFO", func(s *scene) { remove(s); s.must(syscall.Mkfifo(s.path("a.cache"), 0o644)) }, blocking},
		{"device", func(s *scene) { remove(s); s.must(os.Symlink("/dev/zero", s.path("a.cache"))) }, blocking},
		{"socket", func(s *scene) {
			remove(s)
			l, err := net.Listen("unix", s.path("a.cache"))
			s.must(err)
			s.t.Cleanup(func() { l.Close() })
		}, blocking},
	}
	// Root can read everything.
	if os.Getuid() != 0 {
		list = append(list,
			damage{"unreadable", func(s *scene) { s.must(os.Chmod(s.path("a.cache"), 0)) }, noticed},
			damage{"unreadable directory", func(s *scene) {
				s.must(os.Chmod(s.cache, 0))
				s.t.Cleanup(func() { os.Chmod(s.cache, 0o755) })
			}, blocking},
		)
	}
	return list
}
