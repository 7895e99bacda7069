package counted

import "testing"

// What is retired is closed once: by who retires it, or by the last user.
func TestClosedOnce(t *testing.T) {
	var idle Users
	if !idle.Retire() || idle.Retire() || idle.Acquire() {
		t.Error("without users it is closed at once, and nobody gets in")
	}
	var busy Users
	if !busy.Acquire() || !busy.Acquire() || busy.Release() || busy.Retire() || busy.Acquire() || busy.Retire() || !busy.Release() {
		t.Error("with users it is closed by the last of them")
	}
}
