package serve_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	pb "google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/serve"
)

// rawClient sends arbitrary HTTP/2 frames.
type rawClient struct {
	net.Conn
	*http2.Framer
	block   bytes.Buffer
	headers *hpack.Encoder
}

func (c client) raw(t testing.TB) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", c.conn.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	r := &rawClient{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	r.AllowIllegalWrites = true
	r.headers = hpack.NewEncoder(&r.block)
	r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	return r
}

// greet starts a connection properly.
func (c *rawClient) greet() error {
	_, err := io.WriteString(c.Conn, http2.ClientPreface)
	return errors.Join(err, c.WriteSettings())
}

// usual returns the headers of a call.
func usual(path string, more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type",
		"application/grpc", "te", "trailers"}, more...)
}

// without returns a header list without one of its fields.
func without(list []string, name string) []string {
	i := slices.Index(list, name)
	return slices.Concat(list[:i], list[i+2:])
}

func (c *rawClient) open(stream uint32, end bool, fields ...string) error {
	c.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		if err := c.headers.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}); err != nil {
			return err
		}
	}
	block := c.block.Bytes()
	first := block[:min(len(block), 16<<10)]
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndStream: end,
		EndHeaders: len(first) == len(block)})
	for rest := block[len(first):]; len(rest) > 0 && err == nil; {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		err = c.WriteContinuation(stream, len(rest) == 0, part)
	}
	return err
}

// framed returns a gRPC message.
func framed(flag byte, length int, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(length)), message...)
}

// outcome reads until a stream has ended and returns the result: "answered", or the server's error.
func (c *rawClient) outcome(stream uint32) string {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				return "no answer"
			}
			return "closed: " + err.Error()
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return "connection: " + f.ErrCode.String()
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "stream: " + f.ErrCode.String()
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID != stream || !f.StreamEnded() {
				continue
			}
			for _, h := range f.Fields {
				switch {
				case h.Name == ":status" && h.Value != "200":
					return "HTTP " + h.Value
				case h.Name == "grpc-status" && h.Value == "0":
					return "answered"
				case h.Name == "grpc-status":
					return "status " + h.Value
				}
			}
		}
	}
}

// verdict is the expected result of a call.
type verdict int

const (
	refused verdict = iota
	answered
	tolerated // answered or refused: the specification allows both
)

// Calls and connections that violate the protocol are refused; another client's connection is served meanwhile and
// afterwards.
func TestProtocolAbuse(t *testing.T) {
	const get, list = registryService + "GetPackage", registryService + "ListBundles"
	request, err := pb.Marshal(&api.GetPackageRequest{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 20<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	call := func(fields []string, body []byte) func(c *rawClient) error {
		return func(c *rawClient) error { return errors.Join(c.open(1, false, fields...), c.WriteData(1, true, body)) }
	}
	good := framed(0, len(request), request)
	frame := func(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) func(c *rawClient) error {
		return func(c *rawClient) error {
			return errors.Join(c.WriteRawFrame(kind, flags, stream, payload), c.open(1, false, usual(get)...),
				c.WriteData(1, true, good))
		}
	}
	setting := func(id http2.SettingID, v uint32) func(c *rawClient) error {
		return frame(http2.FrameSettings, 0, 0,
			binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(id)), v))
	}
	cases := []struct {
		name string
		do   func(c *rawClient) error
		want verdict
	}{
		{"a call", call(usual(get), good), answered},
		{"a call in many pieces", func(c *rawClient) error {
			err := c.open(1, false, usual(get)...)
			for i := range good {
				err = errors.Join(err, c.WriteData(1, i == len(good)-1, good[i:i+1]))
			}
			return err
		}, answered},
		{"no message", func(c *rawClient) error { return c.open(1, true, usual(get)...) }, refused},
		{"no message of a list", func(c *rawClient) error { return c.open(1, true, usual(list)...) }, refused},
		{"no end and no message", func(c *rawClient) error { return c.open(1, false, usual(list)...) }, refused},
		{"half a message and no end", func(c *rawClient) error {
			return errors.Join(c.open(1, false, usual(list)...), c.WriteData(1, false, good[:len(good)-1]))
		}, refused},
		{"half a message", call(usual(get), good[:len(good)-1]), refused},
		{"half a length", call(usual(get), good[:3]), refused},
		{"two messages", call(usual(get), slices.Concat(good, good)), tolerated},
		{"length of 4 GiB", call(usual(get), framed(0, 1<<32-1, request)), refused},
		{"length of 10 MiB", call(usual(list), framed(0, 10<<20, request)), refused},
		{"compressed, without saying how", call(usual(get), framed(1, len(request), request)), refused},
		{"compressed to a thousandth", call(usual(get, "grpc-encoding", "gzip"), framed(1, bomb.Len(), bomb.Bytes())),
			refused},
		{"compressed in an unknown way", call(usual(get, "grpc-encoding", "br"), framed(1, len(request), request)),
			refused},
		{"unknown flag", call(usual(get), framed(0x40, len(request), request)), refused},
		{"timeout that is none", call(usual(get, "grpc-timeout", "soon"), good), refused},
		{"negative timeout", call(usual(get, "grpc-timeout", "-1S"), good), refused},
		{"timeout of many digits", call(usual(get, "grpc-timeout", "999999999999999999999H"), good), refused},
		{"timeout that is over", call(usual(list, "grpc-timeout", "0n"), good), refused},
		{"content of another type",
			call(append(without(usual(get), "content-type"), "content-type", "application/json"), good), refused},
		{"content of no type", call(without(usual(get), "content-type"), good), refused},
		{"GET", call(append([]string{":method", "GET"}, without(usual(get), ":method")...), good), refused},
		{"no method", call(without(usual(get), ":method"), good), refused},
		{"no path", call(without(usual(get), ":path"), good), refused},
		{"two paths", call(append([]string{":path", list}, usual(get)...), good), refused},
		{"path after the headers", call(append(without(usual(get), ":path"), ":path", get), good), refused},
		{"empty path", call(usual(""), good), refused},
		{"path without a slash", call(usual("nothing"), good), refused},
		{"path with too many slashes", call(usual(get+"/"), good), refused},
		{"path that is encoded", call(usual("/api.Registry/%47etPackage"), good), refused},
		{"path with dots", call(usual("/x/../api.Registry/GetPackage"), good), refused},
		{"path with a query", call(usual(get+"?x=y"), good), refused},
		{"path of another case", call(usual(strings.ToLower(get)), good), refused},
		{"path of 7 kB", call(usual("/"+strings.Repeat("x/", 3500)), good), refused},
		{"name in capitals", call(usual(get, "X-Big", "y"), good), refused},
		{"header of connections", call(usual(get, "connection", "close"), good), refused},
		{"binary header that is none", call(usual(get, "x-bin", "***"), good), refused},
		{"header of 100 kB", call(usual(get, "x", strings.Repeat("x", 100<<10)), good), refused},
		{"5,000 headers", call(usual(get, slices.Repeat([]string{"x", "y"}, 5000)...), good), refused},
		{"headers that are no code",
			frame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, bytes.Repeat([]byte{0xff}, 100)), refused},
		{"stream 0", func(c *rawClient) error { return c.open(0, true, usual(get)...) }, refused},
		{"stream of even number", func(c *rawClient) error { return c.open(2, true, usual(get)...) }, refused},
		{"stream of smaller number", func(c *rawClient) error {
			return errors.Join(c.open(9, false, usual(get)...), c.WriteData(9, true, good),
				c.open(1, false, usual(get)...), c.WriteData(1, true, good))
		}, refused},
		{"data on stream 0", frame(http2.FrameData, 0, 0, []byte("x")), refused},
		{"padding that is longer than the frame", func(c *rawClient) error {
			return errors.Join(c.open(1, false, usual(get)...),
				c.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{200, 0}))
		}, refused},
		{"settings of odd length", frame(http2.FrameSettings, 0, 0, []byte{1, 2, 3}), refused},
		{"settings of a stream", frame(http2.FrameSettings, 0, 1, make([]byte, 6)), refused},
		{"window of 4 GiB", setting(http2.SettingInitialWindowSize, 1<<32-1), refused},
		{"frames of no size", setting(http2.SettingMaxFrameSize, 0), tolerated},
		{"table of 4 GiB", setting(http2.SettingHeaderTableSize, 1<<32-1), answered},
		{"table of nothing", setting(http2.SettingHeaderTableSize, 0), answered},
		{"unknown setting", setting(0x1234, 7), answered},
		{"push that is neither", setting(http2.SettingEnablePush, 7), tolerated},
		{"windows that overflow", func(c *rawClient) error {
			return errors.Join(c.open(1, false, usual(list)...), c.WriteWindowUpdate(1, 1<<31-1),
				c.WriteWindowUpdate(1, 1<<31-1), c.WriteData(1, true, framed(0, 0, nil)))
		}, tolerated},
		{"ping of odd length", frame(http2.FramePing, 0, 0, []byte("x")), refused},
		{"answer to no ping", frame(http2.FramePing, http2.FlagPingAck, 0, make([]byte, 8)), answered},
		{"push promise", frame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, make([]byte, 8)), tolerated},
		{"continuation of nothing", frame(http2.FrameContinuation, 0, 1, []byte("x")), refused},
		{"unknown frame", frame(0xee, 0xff, 0, make([]byte, 1000)), answered},
		{"frame larger than was agreed", frame(http2.FrameData, 0, 1, make([]byte, 1<<20)), refused},
		{"reset of a stream that never was", frame(http2.FrameRSTStream, 0, 99, make([]byte, 4)), answered},
		{"priority of a stream over itself", frame(http2.FramePriority, 0, 1, []byte{0, 0, 0, 1, 0}), answered},
	}
	m := model{theCatalog()}
	dir := t.TempDir()
	newRandom(3).writeAs(t, dir, m.catalog, filePerPackage, ".json")
	server := serve.New(serve.Limits{Request: 300 * time.Millisecond}, nil)
	server.SetStore(load(t, directorySource(t, dir), serve.LoadOptions{}))
	other := startServer(t, server)
	summary := m.summary()
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := other.raw(t)
			if err := r.greet(); err != nil {
				t.Fatal(err)
			}
			// The server may close the connection during this write.
			writeErr := c.do(r)
			got := r.outcome(1)
			if got == "no answer" || c.want != tolerated && (got == "answered") != (c.want == answered) {
				t.Errorf("%s (%v)", got, writeErr)
			}
			if d := other.differs(t.Context(), m, summary[i%len(summary)]); d != "" {
				t.Error(d)
			}
		})
	}
}

// Beyond the connection limit, connections of long silent clients are closed, even if they began properly. A client
// that sends something keeps its connection.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	m := model{theCatalog()}
	dir := t.TempDir()
	newRandom(3).writeAs(t, dir, m.catalog, filePerPackage, ".json")
	server := serve.New(serve.Limits{Connections: 20, Handshake: 500 * time.Millisecond}, nil)
	server.SetStore(load(t, directorySource(t, dir), serve.LoadOptions{}))
	first := startServer(t, server)
	list := question{method: registryService + "ListPackages", request: &api.ListPackageRequest{}}
	for i := range 60 {
		if err := first.raw(t).greet(); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if d := first.differs(t.Context(), m, list); d != "" {
				t.Fatal(d)
			}
		}
	}
	if d := dial(t, first.conn.Target()).differs(t.Context(), m, list); d != "" {
		t.Error(d)
	}
}
