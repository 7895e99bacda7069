package web

import (
	"strings"
	"testing"
	"testing/fstest"
)

// A package whose blobs lie between those of others is read whole, and answers keep the order of the files.
func TestPackagesInPieces(t *testing.T) {
	var text strings.Builder
	var order []string
	for _, blob := range []string{
		`{"name":"a.v1","package":"a","schema":"olm.bundle"`, `{"name":"b","schema":"olm.package"`,
		`{"entries":[{"name":"a.v1"}],"name":"c","package":"a","schema":"olm.channel"`, `{"package":"b","schema":"x"`,
		`{"schema":"x"`, `{"defaultChannel":"c","name":"a","schema":"olm.package"`,
		`{"package":"b","name":"n","schema":"x"`,
	} {
		text.WriteString(blob + "}\n")
		order = append(order, blob)
	}
	c := contentOf(t, fstest.MapFS{"a.json": {Data: []byte(text.String())}})
	all, err := c.catalog(t.Context(), "a")
	if err != nil || len(all.Packages) != 1 || len(all.Channels) != 1 || len(all.Bundles) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	server := siteOf(t, c).URL
	if a := get(t, server+"/package?name=a"); a.code != 200 || !strings.Contains(a.body, "a.v1") {
		t.Errorf("page: %d %.300s", a.code, a.body)
	}
	lines := strings.Split(strings.TrimSpace(get(t, server+"/api/v1/all").body), "\n")
	for i, line := range lines {
		if strings.Contains(order[i], `"package":"b","name"`) {
			continue // its keys are sorted in the answer
		}
		if line != order[i]+"}" {
			t.Errorf("line %d is %s", i, line)
		}
	}
	if a := get(t, server+"/api/v1/metas?schema=x"); strings.Count(a.body, "\n") != 3 ||
		!strings.HasPrefix(a.body, `{"package":"b","schema":"x"}`+"\n"+`{"schema":"x"}`) {
		t.Errorf("metas: %s", a.body)
	}
}
