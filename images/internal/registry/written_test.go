package registry

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/opencontainers/go-digest"
)

// Repositories of which nothing is known are forgotten when they are many and not used; the others stay the same.
func TestRepositoriesThatAreForgotten(t *testing.T) {
	c, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := func(name string) *Repository {
		t.Helper()
		r, err := c.Repository("registry.example.com/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	used := at("used")
	at("written").sent.Store(digest.FromString("a blob"), true)
	for i := range 5 * maxRepositories {
		at(fmt.Sprint("unused/n", i))
		if i%maxRepositories == maxRepositories-1 {
			runtime.GC()
		}
	}
	if n := len(c.written); n > 3*maxRepositories {
		t.Errorf("%d are remembered", n)
	}
	if at("used") != used || at("written").isNew() {
		t.Error("one that is used, or written to, is forgotten")
	}
	runtime.KeepAlive(used)
}
