package dockerfile

import "testing"

// A name is written so that a builder reads it as it is.
func TestCopy(t *testing.T) {
	for from, want := range map[string]string{
		"configs":   "configs /x",
		"-flag":     "./-flag /x",
		"host:port": "./host:port /x",
		"a<<EOF":    "./a<<EOF /x",
		"a@b":       "./a@b /x",
		"two words": `["two words","/x"]`,
		"a$b":       `["a\\$b","/x"]`,
		"a*":        `["a[*]","/x"]`,
		`a\b`:       `["a\\\\\\\\b","/x"]`,
	} {
		if got, err := Copy(from, "/x"); err != nil || got != want {
			t.Errorf("%s: %s, %v", from, got, err)
		}
	}
	if got, err := Copy("a\nb", "/x"); err == nil {
		t.Errorf("a name of two lines: %s", got)
	}
}

// The name of an image is one word, and no flag.
func TestCheckImage(t *testing.T) {
	for name, good := range map[string]bool{"quay.io/a:v1": true, "": false, "a b": false, "a\x00": false,
		"--platform": false} {
		if err := CheckImage("base image", name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}
