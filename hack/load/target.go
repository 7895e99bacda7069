package main

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/mem"

	"github.com/operator-bindery/bindery/internal/api"
)

// target is a server to measure.
type target struct {
	addr   string
	pid    int
	decode bool
	keys   []key
}

// key identifies one answer of GetBundle.
type key struct{ pkg, channel, csv string }

func (k key) request() *api.GetBundleRequest {
	return &api.GetBundleRequest{PkgName: k.pkg, ChannelName: k.channel, CsvName: k.csv}
}

// dial opens a separate connection.
func (t *target) dial() (*grpc.ClientConn, error) {
	options := []grpc.CallOption{grpc.MaxCallRecvMsgSize(64 << 20)}
	if !t.decode {
		options = append(options, grpc.ForceCodecV2(counting{encoding.GetCodecV2(proto.Name)}))
	}
	return grpc.NewClient(t.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(options...))
}

// counted is an answer of which only the size is recorded.
type counted struct{ size int }

// counting is a codec that does not decode answers.
type counting struct{ encoding.CodecV2 }

func (c counting) Unmarshal(data mem.BufferSlice, v any) error {
	if n, ok := v.(*counted); ok {
		n.size = data.Len()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// milestones are the times at which a starting server listens and serves.
type milestones struct{ listening, serving time.Time }

// ready waits until the server's health is SERVING.
func (t *target) ready(ctx context.Context) (m milestones, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	// Plain dials: a gRPC client would back off after each refused connection.
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.addr)
		if err == nil {
			conn.Close()
			break
		}
		if ctx.Err() != nil {
			return m, err
		}
		time.Sleep(200 * time.Microsecond)
	}
	m.listening = time.Now()
	conn, err := t.dial()
	if err != nil {
		return m, err
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return m, err
	}
	for {
		now, err := watch.Recv()
		if err != nil {
			return m, err
		}
		if now.GetStatus() == healthpb.HealthCheckResponse_SERVING {
			m.serving = time.Now()
			return m, nil
		}
	}
}

// findKeys lists the bundles that can be requested.
func (t *target) findKeys(ctx context.Context) error {
	conn, err := (&target{addr: t.addr, decode: true}).dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := api.NewRegistryClient(conn).ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return err
	}
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		t.keys = append(t.keys, key{b.GetPackageName(), b.GetChannelName(), b.GetCsvName()})
	}
	if len(t.keys) == 0 {
		return errors.New("the catalog has no bundles")
	}
	return nil
}

func (t *target) getOnce(ctx context.Context, k key) error {
	conn, err := t.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = api.NewRegistryClient(conn).GetBundle(ctx, k.request())
	return err
}
