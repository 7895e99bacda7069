package serve

import (
	"bytes"
	"context"
	"database/sql"
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

// A related image that is no pull spec does not keep a database from being served, as opm serves it.
func TestDatabaseWithAnyImages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	if err := os.WriteFile(path, readFile(t, "../testdata/db/small.db"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const insert = "INSERT INTO related_image (image, operatorbundle_name) VALUES ('oci://quay.io/kuadrant/wasm-shim:v0.5.0', 'etcdoperator.v0.9.2')"
	if _, err := db.Exec(insert); err != nil {
		t.Fatal(err)
	}
	for _, compat := range []sqlite.Compat{sqlite.CompatNone, sqlite.CompatOPM} {
		store, err := Load(t.Context(), Database(t.Context(), path, sqlite.Options{Compat: compat}), LoadOptions{})
		if err != nil {
			t.Fatalf("compat %q: %v", compat, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
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
// another order, and bundles say everything where that server leaves fields out. The servers are the ways in which the
// same database is served.
func replayDatabase(t *testing.T, servers map[string]*grpc.ClientConn, calls []recordedCall, differs func(recordedCall) bool) {
	t.Helper()
	for _, c := range calls {
		if differs(c) {
			continue
		}
		var right [][]json.RawMessage // what was found to be as recorded: most ways give the same bytes
		w := comparableTexts(t, c.RPC, c.Resp, false)
		for way, conn := range servers {
			got, err := call(t, conn, c.RPC, c.Req)
			if (err != nil) != (c.RC != 0) {
				t.Errorf("%s: %s %s: error %v, recorded %q", way, c.RPC, c.Req, err, errorText(c.Err))
				continue
			}
			if slices.ContainsFunc(right, func(r []json.RawMessage) bool {
				return slices.EqualFunc(r, got, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
			}) {
				continue
			}
			h := comparableTexts(t, c.RPC, got, true)
			if slices.Equal(h, w) || c.RPC == "GetBundleThatReplaces" && len(w) == 1 && databaseReplacement(t, conn, c.Req, w[0]) {
				right = append(right, got)
				continue
			}
			if len(h) != len(w) {
				t.Errorf("%s: %s %s: %d answers, recorded %d\n got %.400v\nwant %.400v", way, c.RPC, c.Req, len(h), len(w), h, w)
				continue
			}
			for i := range h {
				if h[i] != w[i] {
					a, b := clip(h[i], w[i])
					t.Errorf("%s: %s %s: answer %d differs\n got …%s…\nwant …%s…", way, c.RPC, c.Req, i, a, b)
					break
				}
			}
		}
	}
}

// comparableTexts are answers to a call in one form and order; own tells that they are not recorded ones.
func comparableTexts(t *testing.T, rpc string, answers []json.RawMessage, own bool) []string {
	t.Helper()
	var texts []string
	for _, a := range answers {
		m := comparable(t, a)
		if own && rpc == "GetBundleForChannel" {
			m = map[string]any{"csvName": m["csvName"], "csvJson": m["csvJson"]}
		}
		if strings.Contains(rpc, "ChannelEntries") {
			// Which of several edges an entry stands for differs, not which entries there are.
			delete(m, "replaces")
		}
		texts = append(texts, text(t, m))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
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
		texts := make([]string, len(list))
		for i, v := range list {
			texts[i] = text(t, v)
		}
		slices.Sort(texts)
		m[field] = slices.Compact(texts)
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

// asksForNothing is true for the question what replaces the empty name: it has the entries that replace nothing for an
// answer here, as in opm's server of file-based catalogs.
func asksForNothing(c recordedCall) bool {
	return c.RPC == "GetChannelEntriesThatReplace" && string(c.Req) == "{}"
}

func TestRecordedDatabaseAnswersHere(t *testing.T) {
	dir := filepath.Join("testdata", "recorded", "truncated")
	replayDatabase(t, databaseServers(t, filepath.Join(dir, "index.db")), readCalls(t, filepath.Join(dir, "calls-db.ndjson")), asksForNothing)
}

func databaseServers(t *testing.T, path string) map[string]*grpc.ClientConn {
	t.Helper()
	servers := map[string]*grpc.ClientConn{}
	for way, load := range databaseStores {
		s := New(Limits{}, nil)
		s.SetStore(load(t, path))
		servers[way] = startServer(t, s)
	}
	return servers
}

func TestRecordedDatabaseAnswers(t *testing.T) {
	dir := oracleDir(t)
	cases, err := filepath.Glob(filepath.Join(dir, "golden-grpc", "*-db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), "-db"), func(t *testing.T) {
			t.Parallel()
			testDatabaseAnswers(t, dir, path)
		})
	}
}

func testDatabaseAnswers(t *testing.T, dir, path string) {
	name := strings.TrimSuffix(filepath.Base(path), "-db")
	// Opm's server of databases gives entries as the latest that are no heads. Where its server of file-based
	// catalogs has no answer, there is none here.
	refused := map[string]bool{}
	for _, c := range readCalls(t, filepath.Join(dir, "golden-grpc", name+"-fbc", "calls.ndjson")) {
		if c.RC != 0 && (c.RPC == "GetLatestChannelEntriesThatProvide" || c.RPC == "GetDefaultBundleThatProvides") {
			refused[c.RPC+string(c.Req)] = true
		}
	}
	replayDatabase(t, databaseServers(t, filepath.Join(dir, "db", name+".db")), readCalls(t, filepath.Join(path, "calls.ndjson")), func(c recordedCall) bool {
		return asksForNothing(c) || refused[c.RPC+string(c.Req)]
	})
}
