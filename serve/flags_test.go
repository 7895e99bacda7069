package serve

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Flags have the defaults of the options, and are refused by the flag's name. Without --max-connections the memory decides.
func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*Options)
		given string
		want  string
	}{
		"defaults":             {func(*Options) {}, "", ""},
		"a port":               {func(o *Options) { o.Port = 70000 }, "port", "invalid --port value 70000, expected 0 to 65535"},
		"an interval":          {func(o *Options) { o.ReloadEvery = -time.Second }, "reload-every", "invalid --reload-every value -1s"},
		"no key":               {func(o *Options) { o.TLSCert = "x" }, "tls-cert", "--tls-cert and --tls-key go together"},
		"no streams":           {func(o *Options) { o.Limits.Streams = 0 }, "max-streams", "invalid --max-streams value 0"},
		"no effect":            {func(o *Options) { o.HTTPTitle = "x" }, "title", "--title has no effect without --http-addr"},
		"no gate":              {func(o *Options) { o.HTTPAddr, o.gates = ":0", "" }, "http-gates", "invalid --http-gates value: invalid gate"},
		"hosts without a site": {func(o *Options) { o.hosts = "a:80" }, "http-host", "invalid --http-host value: "},
	} {
		var o Options
		o.Flags()
		c.set(&o)
		err := o.Check(func(flag string) bool { return flag == c.given })
		if c.want == "" && (err != nil || o.Limits.Connections != 0 || o.Port != DefaultPort) {
			t.Errorf("%s: %v, %+v", name, err, o)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != fault.Usage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var o Options
	o.Flags()
	if err := o.Check(func(flag string) bool { return slices.Contains([]string{"max-connections"}, flag) }); err != nil ||
		o.Limits.Connections != DefaultConnections {
		t.Errorf("%v, %d", err, o.Limits.Connections)
	}
}
