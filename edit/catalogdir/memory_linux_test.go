package catalogdir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// The memory of an edit does not grow with the unchanged packages, even if they are in the same file.
func TestMemory(t *testing.T) {
	megabytes := 16
	if text := os.Getenv("BINDERY_MEGABYTES"); text != "" {
		var err error
		megabytes, err = strconv.Atoi(text)
		check(t, err)
	}
	for _, oneFile := range []bool{false, true} {
		for _, format := range []declcfg.Format{declcfg.FormatJSON, declcfg.FormatYAML} {
			t.Run(fmt.Sprint(oneFile, format), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "catalog")
				base(t, dir)
				for n := range megabytes {
					name := fmt.Sprintf("p%03d/catalog.%s", n, format)
					if oneFile {
						name = "catalog." + string(format)
					}
					check(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
					f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
					check(t, err)
					check(t, megabyte(fmt.Sprintf("p%03d", n)).Write(f, format))
					check(t, f.Close())
				}
				for _, edit := range []string{"all", "p000"} {
					cmd := job(dir, strings.Fields(edit+" skeleton")...)
					out, err := cmd.CombinedOutput()
					if err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					var peak int
					_, err = fmt.Sscanf(string(out), "done %d", &peak)
					check(t, err)
					t.Logf("%s: %d MB in %v", edit, peak, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
					if peak == 0 || peak > 60 {
						t.Errorf("%s: %d MB of memory for %d MB of catalog", edit, peak, megabytes)
					}
				}
			})
		}
	}
}

func megabyte(pkg string) *declcfg.Catalog {
	c := &declcfg.Catalog{Packages: []declcfg.Package{{Name: pkg}}}
	for n := range 20 {
		c.Bundles = append(c.Bundles, declcfg.Bundle{Name: fmt.Sprintf("%s.v1.0.%d", pkg, n), Package: pkg,
			Image: "r/x", Properties: []declcfg.Property{
				{Type: declcfg.PropertyPackage,
					Value: []byte(fmt.Sprintf(`{"packageName":%q,"version":"1.0.%d"}`, pkg, n))},
				declcfg.NewBundleObject(
					[]byte(`{"kind":"ConfigMap","data":{"x":"` + strings.Repeat("abcdefghijklmnop", 2400) + `"}}`)),
			}})
	}
	return c
}
