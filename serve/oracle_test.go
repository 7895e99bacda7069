package serve

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// recordedCall is one recorded call of opm's server.
type recordedCall struct {
	RPC  string            `json:"rpc"`
	Req  json.RawMessage   `json:"req"`
	RC   int               `json:"rc"`
	Resp []json.RawMessage `json:"resp"`
	Err  string            `json:"err"`
}

// oracleDir returns the directory of all recorded answers.
func oracleDir(t testing.TB) string {
	t.Helper()
	return string(recorded.All(t))
}

// readFile reads a file, or the .zst of it.
func readFile(t testing.TB, name string) []byte {
	t.Helper()
	if data, err := os.ReadFile(name); err == nil {
		return data
	}
	packed, err := os.ReadFile(name + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tarFS reads a tar of a catalog directory.
func tarFS(t testing.TB, data []byte) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(filepath.Clean(h.Name), "/")
		files[name] = &fstest.MapFile{Data: body, Mode: 0o644}
	}
	return files
}

// unpackedFS reads a directory in which large files are compressed.
func unpackedFS(t testing.TB, dir string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name = strings.TrimSuffix(name, ".zst")
		rel, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = &fstest.MapFile{Data: readFile(t, name), Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func loadCatalog(t testing.TB, fsys fs.FS) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// catalogStore encodes a catalog and opens the result.
func catalogStore(t testing.TB, c *declcfg.Catalog) Store {
	t.Helper()
	parts := c.ByPackage()
	var packages []*Package
	for _, name := range sortedNames(parts) {
		file, err := EncodePackage(parts[name], nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := OpenPackage(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Verify(context.Background()); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return &store{packages: packages}
}

// startServer serves a store on the loopback and returns a connection to it.
func startServer(t testing.TB, s *server) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return conn
}

func method(t testing.TB, rpc string) protoreflect.MethodDescriptor {
	t.Helper()
	for _, service := range []protoreflect.FullName{"api.Registry", "api.ExperimentalRegistry",
		"grpc.health.v1.Health"} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(service + "." + protoreflect.FullName(rpc))
		if err == nil {
			return d.(protoreflect.MethodDescriptor)
		}
	}
	t.Fatalf("no method %q", rpc)
	return nil
}

// call makes a call by name, without generated code, and returns its answers as JSON.
func call(t testing.TB, conn *grpc.ClientConn, rpc string, req json.RawMessage) ([]json.RawMessage, error) {
	t.Helper()
	m := method(t, rpc)
	in := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal(req, in); err != nil {
		t.Fatal(err)
	}
	full := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, full, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(in); err != nil {
		return nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	var answers []json.RawMessage
	for {
		out := dynamicpb.NewMessage(m.Output())
		if err := s.RecvMsg(out); errors.Is(err, io.EOF) {
			return answers, nil
		} else if err != nil {
			return answers, err
		}
		answers = append(answers, messageJSON(t, out))
	}
}

func messageJSON(t testing.TB, m proto.Message) json.RawMessage {
	t.Helper()
	b, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// normalJSON normalises a message's JSON; strings, which may contain JSON, are unchanged.
func normalJSON(t testing.TB, b []byte) json.RawMessage {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readCalls(t testing.TB, name string) []recordedCall {
	t.Helper()
	var calls []recordedCall
	s := bufio.NewScanner(bytes.NewReader(readFile(t, name)))
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var c recordedCall
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	if len(calls) == 0 {
		t.Fatalf("%s: no recorded calls", name)
	}
	return calls
}

// isSet reports whether opm's answers to the call come in random order.
func isSet(rpc string) bool {
	return rpc == "ListPackages" || strings.HasPrefix(rpc, "GetChannelEntries") || strings.HasPrefix(rpc,
		"GetLatestChannelEntries")
}

// errorText returns the message of a recorded error. The recording has lost trailing spaces.
func errorText(recorded string) string {
	_, text, _ := strings.Cut(recorded, "Message: ")
	return strings.TrimSpace(text)
}

func texts(t testing.TB, answers []json.RawMessage, sorted bool) []string {
	t.Helper()
	var out []string
	for _, a := range answers {
		out = append(out, string(normalJSON(t, a)))
	}
	if sorted {
		slices.Sort(out)
	}
	return out
}

// clip shortens two long answers to the place where they differ.
func clip(a, b string) (string, string) {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	cut := func(s string) string { return s[max(0, min(i, len(s))-60):min(len(s), i+140)] }
	return cut(a), cut(b)
}

// replay makes the recorded calls and compares every answer.
func replay(t *testing.T, conn *grpc.ClientConn, calls []recordedCall) {
	t.Helper()
	for _, c := range calls {
		got, err := call(t, conn, c.RPC, c.Req)
		if c.RC != 0 {
			if err == nil || strings.TrimSpace(status.Convert(err).Message()) != errorText(c.Err) {
				t.Errorf("%s %s: error %v, recorded %q", c.RPC, c.Req, err, errorText(c.Err))
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.RPC, c.Req, err)
			continue
		}
		have, want := texts(t, got, isSet(c.RPC)), texts(t, c.Resp, isSet(c.RPC))
		if slices.Equal(have, want) {
			continue
		}
		if len(have) != len(want) {
			t.Errorf("%s %s: %d answers, recorded %d\n got %.300v\nwant %.300v", c.RPC, c.Req, len(have), len(want),
				have, want)
			continue
		}
		if c.RPC == "GetBundleThatReplaces" && isReplacement(t, conn, c.Req, want[0]) {
			continue
		}
		for i := range have {
			if have[i] != want[i] {
				h, w := clip(have[i], want[i])
				t.Errorf("%s %s: answer %d differs\n got …%s…\nwant …%s…", c.RPC, c.Req, i, h, w)
				break
			}
		}
	}
}

// isReplacement reports whether a recorded answer, which opm chose at random among several right ones, is what the
// server gives for another entry of the channel that replaces or skips the bundle.
func isReplacement(t *testing.T, conn *grpc.ClientConn, req json.RawMessage, want string) bool {
	t.Helper()
	return anyReplacement(t, conn, req, func(got json.RawMessage) bool { return string(normalJSON(t, got)) == want })
}

// anyReplacement reports whether one of the entries that replace or skip a bundle has the wanted answer.
func anyReplacement(t *testing.T, conn *grpc.ClientConn, req json.RawMessage, matches func(json.RawMessage) bool) bool {
	t.Helper()
	var asked struct{ PkgName, ChannelName, CSVName string }
	if err := json.Unmarshal(req, &asked); err != nil {
		t.Fatal(err)
	}
	entries, err := call(t, conn, "GetChannelEntriesThatReplace", fmt.Appendf(nil, `{"csvName":%q}`, asked.CSVName))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		var e struct{ PackageName, ChannelName, BundleName string }
		if err := json.Unmarshal(entry, &e); err != nil {
			t.Fatal(err)
		}
		if e.PackageName != asked.PkgName || e.ChannelName != asked.ChannelName {
			continue
		}
		got, err := call(t, conn, "GetBundle",
			fmt.Appendf(nil, `{"pkgName":%q,"channelName":%q,"csvName":%q}`, e.PackageName, e.ChannelName,
				e.BundleName))
		if err == nil && matches(got[0]) {
			return true
		}
	}
	return false
}

// TestRecordedAnswers makes every call recorded with opm's file-based catalog server.
func TestRecordedAnswers(t *testing.T) {
	dir := oracleDir(t)
	cases, err := filepath.Glob(filepath.Join(dir, "golden-grpc", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		name := filepath.Base(path)
		var fsys fs.FS
		switch {
		case strings.HasSuffix(name, "-db"):
			continue
		case name == "fbc-mini":
			fsys = os.DirFS(filepath.Join(dir, "fbc/mini"))
		case strings.HasPrefix(name, "case-"):
			fsys = os.DirFS(filepath.Join(dir, "fbc-cases", strings.TrimPrefix(name, "case-")))
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if migrated := filepath.Join(dir, "golden", strings.TrimSuffix(name, "-fbc"),
				"migrate.json.d"); fsys == nil {
				if _, err := os.Stat(migrated); err == nil {
					fsys = unpackedFS(t, migrated)
				} else {
					fsys = tarFS(t, readFile(t, migrated+".tar"))
				}
			}
			s := newServer(Limits{}, nil)
			s.SetStore(catalogStore(t, loadCatalog(t, fsys)))
			replay(t, startServer(t, s), readCalls(t, filepath.Join(path, "calls.ndjson")))
		})
	}
}
