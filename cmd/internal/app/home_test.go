package app

import (
	"errors"
	"os/user"
	"testing"
)

func TestHomeOf(t *testing.T) {
	known := func(string) (*user.User, error) { return &user.User{HomeDir: "/home/me"}, nil }
	unknown := func(uid string) (*user.User, error) { return nil, errors.New("unknown userid " + uid) }
	for name, tc := range map[string]struct {
		env    string
		lookup func(string) (*user.User, error)
		home   string
		has    bool
	}{
		"HOME wins":                    {"/elsewhere", known, "/elsewhere", true},
		"a known user without HOME":    {"", known, "/home/me", true},
		"an unknown user with HOME":    {"/elsewhere", unknown, "/elsewhere", true},
		"an unknown user without HOME": {"", unknown, "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			home, has := homeOf(func(string) string { return tc.env }, tc.lookup)
			if home != tc.home || has != tc.has {
				t.Errorf("got %q %v, expected %q %v", home, has, tc.home, tc.has)
			}
		})
	}
}
