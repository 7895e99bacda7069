package serve

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/operator-bindery/bindery/sqlite"
)

// databaseStore loads a database that may be compressed.
func databaseStore(t *testing.T, name string) Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index.db")
	if err := os.WriteFile(path, readFile(t, name), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := Load(t.Context(), Database(context.Background(), path, sqlite.Options{}), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// rewrittenStore loads what becomes of a database when its catalog is written to a new one.
func rewrittenStore(t *testing.T, name string) Store {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "index.db")
	if err := os.WriteFile(path, readFile(t, name), 0o600); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "written.db")
	if _, err := sqlite.Create(t.Context(), written, databaseBlobs(t.Context(), path, sqlite.Options{Reuse: true}), sqlite.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	store, err := Load(t.Context(), Database(context.Background(), written, sqlite.Options{}), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// databaseStores are the ways in which a database's answers come about.
var databaseStores = map[string]func(*testing.T, string) Store{"original": databaseStore, "written": rewrittenStore}

// replayDatabase makes the calls that were recorded of opm's server of databases. Whether there is an answer must be as
// recorded, and what an answer says: the texts of errors are those of the server of file-based catalogs, lists are in
// another order, and bundles say everything where that server leaves fields out.
func replayDatabase(t *testing.T, conn *grpc.ClientConn, calls []recordedCall, differs func(recordedCall) bool) {
	t.Helper()
	for _, c := range calls {
		if differs(c) {
			continue
		}
		got, err := call(t, conn, c.RPC, c.Req)
		if (err != nil) != (c.RC != 0) {
			t.Errorf("%s %s: error %v, recorded %q", c.RPC, c.Req, err, errorText(c.Err))
			continue
		}
		want := make([]map[string]any, len(c.Resp))
		have := make([]map[string]any, len(got))
		for i := range c.Resp {
			want[i] = comparable(t, c.Resp[i])
		}
		for i := range got {
			have[i] = comparable(t, got[i])
		}
		if c.RPC == "GetBundleForChannel" {
			for i := range have {
				have[i] = map[string]any{"csvName": have[i]["csvName"], "csvJson": have[i]["csvJson"]}
			}
		}
		if strings.Contains(c.RPC, "ChannelEntries") {
			// Which of several edges an entry stands for differs, not which entries there are.
			for _, m := range slices.Concat(have, want) {
				delete(m, "replaces")
			}
		}
		h, w := slices.Compact(sortedTexts(t, have)), slices.Compact(sortedTexts(t, want))
		if slices.Equal(h, w) {
			continue
		}
		if c.RPC == "GetBundleThatReplaces" && len(w) == 1 && databaseReplacement(t, conn, c.Req, w[0]) {
			continue
		}
		if len(h) != len(w) {
			t.Errorf("%s %s: %d answers, recorded %d\n got %.400v\nwant %.400v", c.RPC, c.Req, len(h), len(w), h, w)
			continue
		}
		for i := range h {
			if h[i] != w[i] {
				a, b := clip(h[i], w[i])
				t.Errorf("%s %s: answer %d differs\n got …%s…\nwant …%s…", c.RPC, c.Req, i, a, b)
				break
			}
		}
	}
}

// comparable brings what has no order into one.
func comparable(t *testing.T, answer json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	// Of APIs the plural is not kept, of texts the newline at the end.
	for _, field := range []string{"providedApis", "requiredApis"} {
		apis, _ := m[field].([]any)
		for _, api := range apis {
			delete(api.(map[string]any), "plural")
		}
	}
	// What bundles depend on is in their properties too here. Constraints are properties only, and a deprecation is not a
	// property but a message.
	drop(m, "properties", "olm.gvk.required", "olm.package.required", "olm.constraint", "olm.label", "olm.deprecated")
	drop(m, "dependencies", "olm.constraint", "olm.label")
	delete(m, "deprecation")
	for _, field := range []string{"properties", "dependencies"} {
		list, _ := m[field].([]any)
		for _, v := range list {
			// The escapes in JSON differ, not what it says.
			v := v.(map[string]any)
			v["value"] = string(normalJSON(t, []byte(v["value"].(string))))
		}
	}
	if csv, ok := m["csvJson"].(string); ok {
		m["csvJson"] = strings.TrimSpace(csv)
	}
	objects, _ := m["object"].([]any)
	for i := range objects {
		objects[i] = strings.TrimSpace(objects[i].(string))
	}
	for _, field := range []string{"properties", "dependencies", "providedApis", "requiredApis", "object", "skips", "channels"} {
		list, ok := m[field].([]any)
		if !ok {
			continue
		}
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(t, a), text(t, b)) })
		m[field] = slices.CompactFunc(list, func(a, b any) bool { return text(t, a) == text(t, b) })
	}
	return m
}

// drop removes the elements of some types from a list.
func drop(m map[string]any, field string, types ...string) {
	list, ok := m[field].([]any)
	if !ok {
		return
	}
	list = slices.DeleteFunc(list, func(v any) bool {
		typ, _ := v.(map[string]any)["type"].(string)
		return slices.Contains(types, typ)
	})
	m[field] = list
	if len(list) == 0 {
		delete(m, field)
	}
}

// text is a value as JSON, with JSON inside of strings in one form.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// databaseReplacement is isReplacement for the answers of the server of databases.
func databaseReplacement(t *testing.T, conn *grpc.ClientConn, req json.RawMessage, want string) bool {
	t.Helper()
	return anyReplacement(t, conn, req, func(got json.RawMessage) bool { return text(t, comparable(t, got)) == want })
}

func sortedTexts(t *testing.T, answers []map[string]any) []string {
	var out []string
	for _, a := range answers {
		out = append(out, text(t, a))
	}
	slices.Sort(out)
	return out
}

// asksForNothing is true for the question what replaces the empty name: it has the entries that replace nothing for an
// answer here, as in opm's server of file-based catalogs.
func asksForNothing(c recordedCall) bool {
	return c.RPC == "GetChannelEntriesThatReplace" && string(c.Req) == "{}"
}

func TestRecordedDatabaseAnswersHere(t *testing.T) {
	dir := filepath.Join("testdata", "recorded", "truncated")
	for way, load := range databaseStores {
		t.Run(way, func(t *testing.T) {
			s := New(Limits{}, nil)
			s.SetStore(load(t, filepath.Join(dir, "index.db")))
			replayDatabase(t, startServer(t, s), readCalls(t, filepath.Join(dir, "calls-db.ndjson")), asksForNothing)
		})
	}
}

func TestRecordedDatabaseAnswers(t *testing.T) {
	dir := oracleDir(t)
	cases, err := filepath.Glob(filepath.Join(dir, "golden-grpc", "*-db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		for way, load := range databaseStores {
			t.Run(strings.TrimSuffix(filepath.Base(path), "-db")+"/"+way, func(t *testing.T) { testDatabaseAnswers(t, dir, path, load) })
		}
	}
}

func testDatabaseAnswers(t *testing.T, dir, path string, load func(*testing.T, string) Store) {
	name := strings.TrimSuffix(filepath.Base(path), "-db")
	s := New(Limits{}, nil)
	s.SetStore(load(t, filepath.Join(dir, "db", name+".db")))
	// Opm's server of databases gives entries as the latest that are no heads. Where its server of file-based
	// catalogs has no answer, there is none here.
	refused := map[string]bool{}
	for _, c := range readCalls(t, filepath.Join(dir, "golden-grpc", name+"-fbc", "calls.ndjson")) {
		if c.RC != 0 && (c.RPC == "GetLatestChannelEntriesThatProvide" || c.RPC == "GetDefaultBundleThatProvides") {
			refused[c.RPC+string(c.Req)] = true
		}
	}
	replayDatabase(t, startServer(t, s), readCalls(t, filepath.Join(path, "calls.ndjson")), func(c recordedCall) bool {
		return asksForNothing(c) || refused[c.RPC+string(c.Req)]
	})
}
