package serve_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	pb "google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/serve"
)

// rawCodec sends arbitrary bytes as a message and receives any message as bytes.
type rawCodec struct{ encoding.CodecV2 }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// methods are those of both services, with an empty request of each.
var methods = []question{
	{registryService + "ListPackages", &api.ListPackageRequest{}, false},
	{registryService + "GetPackage", &api.GetPackageRequest{}, false},
	{registryService + "GetBundle", &api.GetBundleRequest{}, false},
	{registryService + "GetBundleForChannel", &api.GetBundleInChannelRequest{}, false},
	{registryService + "GetChannelEntriesThatReplace", &api.GetAllReplacementsRequest{}, false},
	{registryService + "GetBundleThatReplaces", &api.GetReplacementRequest{}, false},
	{registryService + "GetChannelEntriesThatProvide", &api.GetAllProvidersRequest{}, false},
	{registryService + "GetLatestChannelEntriesThatProvide", &api.GetLatestProvidersRequest{}, false},
	{registryService + "GetDefaultBundleThatProvides", &api.GetDefaultProviderRequest{}, false},
	{registryService + "ListBundles", &api.ListBundlesRequest{}, false},
	{customMethod, &api.ExperimentalListPackageCustomSchemasRequest{}, true},
}

// askRaw makes a call with arbitrary bytes as request.
func (c client) askRaw(ctx context.Context, q question, request []byte) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if q.acknowledged {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-acknowledge-experimental", "true")
	}
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, q.method,
		grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2(proto.Name)}))
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(request); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	var answers [][]byte
	for {
		var b []byte
		err := s.RecvMsg(&b)
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		answers = append(answers, b)
	}
}

// FuzzRequests sends arbitrary bytes as a request of any method. A valid request gets the model's answer, an invalid
// one an error, and the server stays up.
func FuzzRequests(f *testing.F) {
	m := model{theCatalog()}
	dir := f.TempDir()
	newRandom(3).writeAs(f, dir, m.catalog, filePerPackage, ".json")
	store, err := serve.Load(context.Background(), directorySource(f, dir), serve.LoadOptions{})
	if err != nil {
		f.Fatal(err)
	}
	server := serve.New(serve.Limits{}, nil)
	server.SetStore(store)
	client := startServer(f, server)
	for _, q := range m.questions() {
		b, err := pb.Marshal(q.request)
		if err != nil {
			f.Fatal(err)
		}
		for i := range methods {
			if methods[i].method == q.method {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Add(uint8(1), []byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f})           // longer than it is
	f.Add(uint8(1), []byte("\x0a\x01\xff"))                               // not UTF-8
	f.Add(uint8(1), []byte("\x0a\x01a\x0a\x01b"))                         // twice
	f.Add(uint8(1), []byte("\x0b\x0b\x0b\x0c\x0c\x0c"))                   // groups
	f.Add(uint8(1), append([]byte("\x0a\x01a"), make([]byte, 70<<10)...)) // too long
	f.Fuzz(func(t *testing.T, method uint8, request []byte) {
		q := methods[int(method)%len(methods)]
		got, err := client.askRaw(t.Context(), q, request)
		q.request = pb.Clone(q.request)
		if pb.Unmarshal(request, q.request) != nil || len(request) > 64<<10 {
			if c := status.Code(err); c != codes.Internal && c != codes.ResourceExhausted || len(got) > 0 {
				t.Errorf("%s %.100q: %d answers, %v", q.method, request, len(got), err)
			}
			return
		}
		want := m.ask(q.method, q.request, q.acknowledged)
		if s := status.Convert(err); s.Code() != want.code || s.Message() != want.text {
			t.Fatalf("%v: got %v, want %v %q", q, err, want.code, want.text)
		}
		if want.code == codes.OK && !want.oneOf && len(got) != len(want.answers) {
			t.Fatalf("%v: %d answers, want %d", q, len(got), len(want.answers))
		}
		for i, b := range got {
			a := newAnswer(q.method)
			if err := pb.Unmarshal(b, a); err != nil {
				t.Fatalf("%v: %v", q, err)
			}
			if !want.oneOf && !same(a, want.answers[i]) {
				t.Errorf("%v: answer %d%s", q, i, fieldDifference(normal(a), normal(want.answers[i])))
			}
		}
	})
}
