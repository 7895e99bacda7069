package counted

import "testing"

// A retired resource is closed once: by the caller of Retire or by its last user.
func TestClosedOnce(t *testing.T) {
	for users := range 3 {
		var u Users
		closed := 0
		count := func(last bool) {
			if last {
				closed++
			}
		}
		for range users {
			if !u.Acquire() {
				t.Fatal("nobody has retired it")
			}
		}
		count(u.Retire())
		count(u.Retire())
		if u.Acquire() {
			t.Error("who comes late is let in")
		}
		for n := range users {
			if closed != 0 {
				t.Errorf("closed with %d users left", users-n)
			}
			count(u.Release())
		}
		if closed != 1 {
			t.Errorf("with %d users it is closed %d times", users, closed)
		}
	}
}
