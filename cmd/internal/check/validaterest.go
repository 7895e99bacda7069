package check

import (
	"bytes"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
)

// restOfProblems are the problems of a catalog beyond those in its error, as items of the answer's list. There can be
// hundreds of thousands; they are spooled.
type restOfProblems struct {
	format string // json or yaml
	text   cmdline.Spool
	count  int
	err    error // the first error of adding
}

// add adds a problem.
func (r *restOfProblems) add(p declcfg.Problem) {
	if r.err != nil {
		return
	}
	r.count++
	var item []byte
	if r.format == "yaml" {
		if item, r.err = yaml.Marshal(p); r.err != nil {
			return
		}
		item = bytes.ReplaceAll(bytes.TrimSuffix(item, []byte("\n")), []byte("\n"), []byte("\n  "))
		item = append([]byte("\n- "), item...)
	} else {
		if item, r.err = json.MarshalIndent(p, "    ", "  "); r.err != nil {
			return
		}
		item = append([]byte(",\n    "), item...)
	}
	_, r.err = r.text.Write(item)
}

// Close removes the temporary file.
func (r *restOfProblems) Close() error { return r.text.Close() }
