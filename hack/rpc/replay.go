package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// recordedCall is a line of a recording: a call and the answer of opm's server.
type recordedCall struct {
	RPC  string            `json:"rpc"`
	Req  json.RawMessage   `json:"req"`
	RC   int               `json:"rc"`
	Resp []json.RawMessage `json:"resp"`
	Err  string            `json:"err"`
}

// replay makes the recorded calls and compares the answers. It prints their number, or every difference.
func replay(ctx context.Context, conn *grpc.ClientConn, file string, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 64<<20)
	calls, different := 0, 0
	for s.Scan() {
		var c recordedCall
		if err := json.Unmarshal(s.Bytes(), &c); err != nil {
			return err
		}
		calls++
		if problem := c.compare(ctx, conn); problem != "" {
			different++
			fmt.Fprintf(out, "%s %.200s: %s\n", c.RPC, c.Req, problem)
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	if different > 0 || calls == 0 {
		return fmt.Errorf("%d of %d answers differ", different, calls)
	}
	fmt.Fprintf(out, "%d recorded answers\n", calls)
	return nil
}

// compare makes one call; the result is empty if the answer equals the recorded one.
func (c recordedCall) compare(ctx context.Context, conn *grpc.ClientConn) string {
	got, err := c.call(ctx, conn)
	if c.RC != 0 {
		_, want, _ := strings.Cut(c.Err, "Message: ")
		if err == nil || strings.TrimSpace(status.Convert(err).Message()) != strings.TrimSpace(want) {
			return fmt.Sprintf("error %v, recorded %q", err, want)
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	var want []string
	for _, r := range c.Resp {
		text, err := normal(r)
		if err != nil {
			return err.Error()
		}
		want = append(want, text)
	}
	// opm returns these in random order.
	if c.RPC == "ListPackages" || strings.Contains(c.RPC, "ChannelEntries") {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("got %.300q\nwant %.300q", got, want)
	}
	return ""
}

// call makes the call by its name.
func (c recordedCall) call(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	var m protoreflect.MethodDescriptor
	for _, service := range []protoreflect.FullName{"api.Registry", "api.ExperimentalRegistry",
		"grpc.health.v1.Health"} {
		if d, err := protoregistry.GlobalFiles.FindDescriptorByName(
			service + "." + protoreflect.FullName(c.RPC)); err == nil {
			m = d.(protoreflect.MethodDescriptor)
		}
	}
	if m == nil {
		return nil, fmt.Errorf("no method %q", c.RPC)
	}
	in := dynamicpb.NewMessage(m.Input())
	if err := protojson.Unmarshal(c.Req, in); err != nil {
		return nil, err
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true},
		fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.SendMsg(in), s.CloseSend()); err != nil {
		return nil, err
	}
	var answers []string
	for {
		out := dynamicpb.NewMessage(m.Output())
		if err := s.RecvMsg(out); errors.Is(err, io.EOF) {
			return answers, nil
		} else if err != nil {
			return nil, err
		}
		text, err := protojson.Marshal(out)
		if err != nil {
			return nil, err
		}
		answer, err := normal(text)
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
	}
}

// normal returns a canonical form of a message's JSON.
func normal(text []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	out, err := json.Marshal(v)
	return string(out), err
}
