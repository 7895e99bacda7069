package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/operator-bindery/bindery/internal/api"
	"github.com/operator-bindery/bindery/serve"
)

const (
	registryService = "/api.Registry/"
	customMethod    = "/api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas"
)

// question is one call.
type question struct {
	method       string // including the service
	request      proto.Message
	acknowledged bool // with the acknowledgement that the experimental method requires
}

func (q question) String() string {
	return fmt.Sprintf("%s{%s} acknowledged %v", q.method, clip(q.request), q.acknowledged)
}

// clip shortens the text of a value.
func clip(v any) string { return fmt.Sprintf("%.300s", fmt.Sprint(v)) }

// newAnswer returns an empty answer of a method.
func newAnswer(method string) proto.Message {
	switch method {
	case registryService + "ListPackages":
		return &api.PackageName{}
	case registryService + "GetPackage":
		return &api.Package{}
	case customMethod:
		return &structpb.Struct{}
	}
	if strings.Contains(method, "ChannelEntries") {
		return &api.ChannelEntry{}
	}
	return &api.Bundle{}
}

// client asks a server over a separate connection.
type client struct{ conn *grpc.ClientConn }

// startServer serves a store on the loopback until the test ends.
func startServer(t testing.TB, s *serve.Server) client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return dial(t, l.Addr().String())
}

func dial(t testing.TB, addr string) client {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return client{conn}
}

// ask makes a call and returns its answers up to the error.
func (c client) ask(ctx context.Context, q question) ([]proto.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if q.acknowledged {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-acknowledge-experimental", "true")
	}
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, q.method)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(q.request); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	var answers []proto.Message
	for {
		a := newAnswer(q.method)
		err := s.RecvMsg(a)
		if errors.Is(err, io.EOF) {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
		answers = append(answers, a)
	}
}

// differs asks the server and the model and describes the difference of the answers; empty if there is none.
func (c client) differs(ctx context.Context, m model, q question) string {
	got, err := c.ask(ctx, q)
	return m.differs(q, got, err)
}

func (m model) differs(q question, got []proto.Message, err error) string {
	want := m.ask(q.method, q.request, q.acknowledged)
	s := status.Convert(err)
	switch {
	case s.Code() != want.code || s.Message() != want.text:
		return fmt.Sprintf("%v\n got %v %.400q\nwant %v %.400q", q, s.Code(), s.Message(), want.code, want.text)
	case want.code != codes.OK:
		if len(got) > 0 {
			return fmt.Sprintf("%v: %d answers and an error", q, len(got))
		}
		return ""
	case want.oneOf:
		if len(got) == 1 && slices.ContainsFunc(want.answers, func(w proto.Message) bool { return same(got[0], w) }) {
			return ""
		}
		return fmt.Sprintf("%v\n got %s\nwant one of %s", q, clip(got), clip(want.answers))
	case len(got) != len(want.answers):
		return fmt.Sprintf("%v: %d answers, want %d\n got %s\nwant %s", q, len(got), len(want.answers), clip(got),
			clip(want.answers))
	}
	for i := range got {
		if !same(got[i], want.answers[i]) {
			return fmt.Sprintf("%v: answer %d%s", q, i, fieldDifference(normal(got[i]), normal(want.answers[i])))
		}
	}
	return ""
}

func same(got, want proto.Message) bool {
	return proto.Equal(got, want) || proto.Equal(normal(got), normal(want))
}

// fieldDifference returns the lines that differ.
func fieldDifference(got, want proto.Message) string {
	lines := func(m proto.Message) [][]byte {
		return bytes.Split([]byte(strings.ReplaceAll(fmt.Sprint(m), "  ", "\n")), []byte("\n"))
	}
	g, w := lines(got), lines(want)
	out := ""
	for i := range max(len(g), len(w)) {
		var a, b []byte
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if !bytes.Equal(bytes.TrimSpace(a), bytes.TrimSpace(b)) && len(out) < 4000 {
			out += fmt.Sprintf("\n got %.600s\nwant %.600s", a, b)
		}
	}
	return out
}

// questions returns calls about everything in a catalog.
func (m model) questions() (list []question) {
	add := func(method string, req proto.Message) {
		list = append(list, question{method: registryService + method, request: req})
	}
	add("ListPackages", &api.ListPackageRequest{})
	add("ListBundles", &api.ListBundlesRequest{})
	names := map[string]bool{"": true}
	for _, p := range m.catalog.Packages {
		add("GetPackage", &api.GetPackageRequest{Name: p.Name})
	}
	for _, c := range m.catalog.Channels {
		add("GetBundleForChannel", &api.GetBundleInChannelRequest{PkgName: c.Package, ChannelName: c.Name})
		for _, e := range c.Entries {
			add("GetBundle", &api.GetBundleRequest{PkgName: c.Package, ChannelName: c.Name, CsvName: e.Name})
			for _, n := range append(slices.Clone(e.Skips), e.Name, e.Replaces) {
				names[n] = true
				add("GetBundleThatReplaces",
					&api.GetReplacementRequest{PkgName: c.Package, ChannelName: c.Name, CsvName: n})
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		add("GetChannelEntriesThatReplace", &api.GetAllReplacementsRequest{CsvName: n})
	}
	gvks := map[string]bool{}
	for _, b := range m.catalog.Bundles {
		for _, p := range b.Properties {
			var v struct{ Group, Version, Kind string }
			if p.Type != "olm.gvk" || gvks[string(p.Value)] || json.Unmarshal(p.Value, &v) != nil {
				continue
			}
			gvks[string(p.Value)] = true
			add("GetChannelEntriesThatProvide",
				&api.GetAllProvidersRequest{Group: v.Group, Version: v.Version, Kind: v.Kind, Plural: "any"})
			add("GetLatestChannelEntriesThatProvide",
				&api.GetLatestProvidersRequest{Group: v.Group, Version: v.Version, Kind: v.Kind})
			add("GetDefaultBundleThatProvides",
				&api.GetDefaultProviderRequest{Group: v.Group, Version: v.Version, Kind: v.Kind})
		}
	}
	for _, o := range m.catalog.Others {
		for _, acknowledged := range []bool{true, false} {
			list = append(list, question{customMethod,
				&api.ExperimentalListPackageCustomSchemasRequest{Schema: o.Schema, PackageName: o.Package},
				acknowledged})
		}
	}
	return list
}

// summary returns calls that show every blob of a catalog.
func (m model) summary() []question {
	return slices.DeleteFunc(m.questions(), func(q question) bool {
		switch strings.TrimPrefix(q.method, registryService) {
		case "ListPackages", "ListBundles", "GetPackage", "GetBundleForChannel", customMethod:
			return false
		}
		return true
	})
}

// question returns a random call about existing or nearly existing names.
func (r random) question(m model) question {
	c := m.catalog.Channels[r.IntN(len(m.catalog.Channels))]
	e := c.Entries[r.IntN(len(c.Entries))]
	other := m.catalog.Channels[r.IntN(len(m.catalog.Channels))]
	pkg, channel, name := r.near(c.Package, other.Package), r.near(c.Name, other.Name), r.near(e.Name,
		append(e.Skips, e.Replaces, other.Entries[0].Name)...)
	group, version, kind := r.near(r.one(groups...)), r.near(r.one(versions...)), r.near(r.one(kinds...))
	methods := []question{
		{method: registryService + "ListPackages", request: &api.ListPackageRequest{}},
		{method: registryService + "ListBundles", request: &api.ListBundlesRequest{}},
		{method: registryService + "GetPackage", request: &api.GetPackageRequest{Name: pkg}},
		{method: registryService + "GetBundle",
			request: &api.GetBundleRequest{PkgName: pkg, ChannelName: channel, CsvName: name}},
		{method: registryService + "GetBundleForChannel",
			request: &api.GetBundleInChannelRequest{PkgName: pkg, ChannelName: channel}},
		{method: registryService + "GetBundleThatReplaces",
			request: &api.GetReplacementRequest{PkgName: pkg, ChannelName: channel, CsvName: name}},
		{method: registryService + "GetChannelEntriesThatReplace",
			request: &api.GetAllReplacementsRequest{CsvName: name}},
		{method: registryService + "GetChannelEntriesThatProvide",
			request: &api.GetAllProvidersRequest{Group: group, Version: version, Kind: kind}},
		{method: registryService + "GetLatestChannelEntriesThatProvide",
			request: &api.GetLatestProvidersRequest{Group: group, Version: version, Kind: kind, Plural: name}},
		{method: registryService + "GetDefaultBundleThatProvides",
			request: &api.GetDefaultProviderRequest{Group: group, Version: version, Kind: kind}},
		{customMethod, &api.ExperimentalListPackageCustomSchemasRequest{Schema: r.near(r.one(schemas...)),
			PackageName: r.one(pkg, "", "nobody")}, r.often(3, 4)},
	}
	return methods[r.IntN(len(methods))]
}

// near returns a name or a similar one.
func (r random) near(name string, others ...string) string {
	switch r.IntN(14) {
	case 0:
		return ""
	case 1:
		return strings.ToUpper(name)
	case 2:
		return name + " "
	case 3:
		return strings.ToValidUTF8(name[:len(name)/2], "") + "\x00x"
	case 4:
		return r.one(oddNames...)
	case 5:
		return strings.Repeat("x", 10_000) + name
	case 6:
		return "\u200e" + name + "%s%!d\n\"'"
	case 7:
		return strings.Repeat("日", 2000)
	}
	if len(others) > 0 && r.often(1, 4) {
		return r.one(others...)
	}
	return name
}
