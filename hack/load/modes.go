package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
)

// client makes the calls of one connection.
type client struct {
	conn   *grpc.ClientConn
	decode bool
	random *rand.Rand
	keys   []key

	calls, messages, bytes int64
	latencies              []time.Duration
	codes                  map[string]int64
}

func (t *target) newClient(o options, n int) (*client, error) {
	conn, err := t.dial()
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, decode: t.decode, random: rand.New(rand.NewPCG(o.seed, uint64(n))), keys: t.keys,
		codes: map[string]int64{}}, nil
}

func (c *client) key() key { return c.keys[c.random.IntN(len(c.keys))] }

// into returns the message to receive an answer in.
func (c *client) into(message any) any {
	if c.decode {
		return message
	}
	return &counted{}
}

func (c *client) count(answer any) {
	c.messages++
	if n, ok := answer.(*counted); ok {
		c.bytes += int64(n.size)
	}
}

func (c *client) unary(ctx context.Context, method string, req, message any) error {
	answer := c.into(message)
	if err := c.conn.Invoke(ctx, method, req, answer); err != nil {
		return err
	}
	c.count(answer)
	return nil
}

// open begins a call with a stream of answers.
func (c *client) open(ctx context.Context, method string, req any) (grpc.ClientStream, error) {
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(req); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

func (c *client) streaming(ctx context.Context, method string, req any, message func() any) error {
	s, err := c.open(ctx, method, req)
	if err != nil {
		return err
	}
	for {
		answer := c.into(message())
		if err := s.RecvMsg(answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		c.count(answer)
	}
}

func (c *client) listBundles(ctx context.Context) error {
	return c.streaming(ctx, api.Registry_ListBundles_FullMethodName, &api.ListBundlesRequest{},
		func() any { return &api.Bundle{} })
}

func (c *client) getBundle(ctx context.Context) error {
	return c.unary(ctx, api.Registry_GetBundle_FullMethodName, c.key().request(), &api.Bundle{})
}

// timed makes a call and records its duration or error.
func (c *client) timed(ctx context.Context, call func(*client, context.Context) error) {
	start := time.Now()
	err := call(c, ctx)
	if ctx.Err() != nil {
		return // the end of the measurement, not an answer
	}
	c.calls++
	if err != nil {
		c.codes[status.Code(err).String()]++
		return
	}
	c.latencies = append(c.latencies, time.Since(start))
}

// hammer lets clients make calls as fast as they can.
func hammer(ctx context.Context, t *target, o options, call func(*client, context.Context) error) (*result, error) {
	clients := make([]*client, o.clients)
	for i := range clients {
		c, err := t.newClient(o, i)
		if err != nil {
			return nil, err
		}
		defer c.conn.Close()
		// The cost of a new connection is not part of the latencies.
		if err := c.unary(ctx, api.Registry_GetPackage_FullMethodName, &api.GetPackageRequest{Name: t.keys[0].pkg},
			&api.Package{}); err != nil {
			return nil, err
		}
		c.messages, c.bytes = 0, 0
		clients[i] = c
	}
	files := watchFiles(ctx, t.pid)
	start := time.Now()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for time.Since(start) < o.time && ctx.Err() == nil {
				c.timed(ctx, call)
			}
		})
	}
	wg.Wait()
	r := &result{Clients: o.clients, Seconds: time.Since(start).Seconds(), Codes: map[string]int64{}, Files: files()}
	r.collect(clients)
	return r, ctx.Err()
}

// collect adds up the results of clients.
func (r *result) collect(clients []*client) {
	var all []time.Duration
	for _, c := range clients {
		r.Calls += c.calls
		r.Messages += c.messages
		r.Bytes += c.bytes
		all = append(all, c.latencies...)
		for code, n := range c.codes {
			r.Codes[code] += n
			r.Errors += n
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(float64(len(all)-1)*share)].Seconds() }
	r.P50, r.P99, r.P999, r.Max = at(0.5), at(0.99), at(0.999), at(1)
}

// watchFiles counts the server's open files until the returned function is called, which returns the maximum.
func watchFiles(ctx context.Context, pid int) func() int {
	ctx, cancel := context.WithCancel(ctx)
	most, done := process(pid).files, make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-tick.C:
				most = max(most, process(pid).files)
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
	return func() int { cancel(); <-done; return most }
}

func list(ctx context.Context, t *target, o options) (*result, error) {
	return hammer(ctx, t, o, (*client).listBundles)
}

func get(ctx context.Context, t *target, o options) (*result, error) {
	return hammer(ctx, t, o, (*client).getBundle)
}

// slow has clients that read one message a second.
func slow(ctx context.Context, t *target, o options) (*result, error) {
	return beside(ctx, t, o, func(ctx context.Context, c *client, s grpc.ClientStream) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if err := s.RecvMsg(c.into(&api.Bundle{})); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// stopped has clients that read nothing.
func stopped(ctx context.Context, t *target, o options) (*result, error) {
	return beside(ctx, t, o, func(ctx context.Context, _ *client, _ grpc.ClientStream) { <-ctx.Done() })
}

// beside measures GetBundle while a crowd of other clients has begun ListBundles.
func beside(ctx context.Context, t *target, o options,
	read func(context.Context, *client, grpc.ClientStream)) (*result, error) {
	crowded, leave := context.WithCancel(ctx)
	defer leave()
	var (
		wg, begun sync.WaitGroup
		failed    atomic.Int64
	)
	for i := range o.crowd {
		c, err := t.newClient(o, i)
		if err != nil {
			return nil, err
		}
		begun.Add(1)
		wg.Go(func() {
			defer c.conn.Close()
			s, err := c.open(crowded, api.Registry_ListBundles_FullMethodName, &api.ListBundlesRequest{})
			if err == nil {
				_, err = s.Header()
			}
			begun.Done()
			if err != nil {
				failed.Add(1)
				return
			}
			read(crowded, c, s)
		})
	}
	begun.Wait()
	r, err := hammer(ctx, t, o, (*client).getBundle)
	if err != nil {
		return nil, err
	}
	r.Crowd, r.RSSDuring = o.crowd, process(t.pid).rss
	if n := failed.Load(); n > 0 {
		r.Codes["of the crowd"] += n
		r.Errors += n
	}
	leave()
	wg.Wait()
	return r, nil
}
