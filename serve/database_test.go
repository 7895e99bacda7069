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

// databaseStore loads a database, which may be compressed.
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

// A related image that is not a pull spec does not prevent serving a database, as in opm.
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
	const insert = "INSERT INTO related_image (image, operatorbundle_name) VALUES " +
		"('oci://quay.io/kuadrant/wasm-shim:v0.5.0', 'etcdoperator.v0.9.2')"
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

// rewrittenStore loads a database that was written from another one's catalog.
func rewrittenStore(t *testing.T, name string) Store {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "index.db")
	if err := os.WriteFile(path, readFile(t, name), 0o600); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "written.db")
	if _, err := sqlite.Create(t.Context(), written, databaseBlobs(t.Context(), path, sqlite.Options{Reuse: true}),
		sqlite.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	store, err := Load(t.Context(), Database(context.Background(), written, sqlite.Options{}), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// databaseStores are two ways of loading a database.
var databaseStores = map[string]func(*testing.T, string) Store{"original": databaseStore, "written": rewrittenStore}

// replayDatabase makes the calls recorded with opm's database server. The answers must agree in existence and content,
// except that error texts are those of the file-based catalog server, lists have another order, and bundles have all
// fields where opm's server omits some. servers serve the same database in different ways.
func replayDatabase(t *testing.T, servers map[string]*grpc.ClientConn, calls []recordedCall,
	differs func(recordedCall) bool) {
	t.Helper()
	for _, c := range calls {
		if differs(c) {
			continue
		}
		var right [][]json.RawMessage // answers found to be right: most ways give the same bytes
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
			if slices.Equal(h, w) || c.RPC == "GetBundleThatReplaces" && len(w) == 1 && databaseReplacement(t, conn,
				c.Req, w[0]) {
				right = append(right, got)
				continue
			}
			if len(h) != len(w) {
				t.Errorf("%s: %s %s: %d answers, recorded %d\n got %.400v\nwant %.400v", way, c.RPC, c.Req, len(h),
					len(w), h, w)
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

// comparableTexts normalises the form and order of answers to a call; own marks answers that are not recorded.
func comparableTexts(t *testing.T, rpc string, answers []json.RawMessage, own bool) []string {
	t.Helper()
	var texts []string
	for _, a := range answers {
		m := comparable(t, a)
		if own && rpc == "GetBundleForChannel" {
			m = map[string]any{"csvName": m["csvName"], "csvJson": m["csvJson"]}
		}
		if strings.Contains(rpc, "ChannelEntries") {
			// Which of several edges an entry represents differs, but not which entries there are.
			delete(m, "replaces")
		}
		texts = append(texts, text(t, m))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// comparable normalises the order of unordered values.
func comparable(t *testing.T, answer json.RawMessage) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	// Plurals of APIs and trailing newlines of texts are not stored.
	for _, field := range []string{"providedApis", "requiredApis"} {
		apis, _ := m[field].([]any)
		for _, api := range apis {
			delete(api.(map[string]any), "plural")
		}
	}
	// Here dependencies are also in the properties. Constraints are properties only, and a deprecation is a message
	// instead of a property.
	drop(m, "properties", "olm.gvk.required", "olm.package.required", "olm.constraint", "olm.label", "olm.deprecated")
	drop(m, "dependencies", "olm.constraint", "olm.label")
	delete(m, "deprecation")
	for _, field := range []string{"properties", "dependencies"} {
		list, _ := m[field].([]any)
		for _, v := range list {
			// The escapes in JSON may differ.
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
	for _, field := range []string{"properties", "dependencies", "providedApis", "requiredApis", "object", "skips",
		"channels"} {
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

// text formats a value as JSON, with JSON inside strings normalised.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// databaseReplacement is isReplacement for the database server's answers.
func databaseReplacement(t *testing.T, conn *grpc.ClientConn, req json.RawMessage, want string) bool {
	t.Helper()
	return anyReplacement(t, conn, req, func(got json.RawMessage) bool { return text(t, comparable(t, got)) == want })
}

// asksForNothing reports whether the call asks what replaces the empty name: the answer here is the entries that
// replace nothing, as in opm's file-based catalog server.
func asksForNothing(c recordedCall) bool {
	return c.RPC == "GetChannelEntriesThatReplace" && string(c.Req) == "{}"
}

func TestRecordedDatabaseAnswersHere(t *testing.T) {
	dir := filepath.Join("testdata", "recorded", "truncated")
	replayDatabase(t, databaseServers(t, filepath.Join(dir, "index.db")),
		readCalls(t, filepath.Join(dir, "calls-db.ndjson")), asksForNothing)
}

func databaseServers(t *testing.T, path string) map[string]*grpc.ClientConn {
	t.Helper()
	servers := map[string]*grpc.ClientConn{}
	for way, load := range databaseStores {
		s := newServer(Limits{}, nil)
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
	// opm's database server returns non-head entries as the latest. Where its file-based catalog server has no answer,
	// there is none here.
	refused := map[string]bool{}
	for _, c := range readCalls(t, filepath.Join(dir, "golden-grpc", name+"-fbc", "calls.ndjson")) {
		if c.RC != 0 && (c.RPC == "GetLatestChannelEntriesThatProvide" || c.RPC == "GetDefaultBundleThatProvides") {
			refused[c.RPC+string(c.Req)] = true
		}
	}
	replayDatabase(t, databaseServers(t, filepath.Join(dir, "db", name+".db")),
		readCalls(t, filepath.Join(path, "calls.ndjson")), func(c recordedCall) bool {
			return asksForNothing(c) || refused[c.RPC+string(c.Req)]
		})
}
