package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/operator-bindery/bindery/internal/api"
)

// digest requests everything: the list of bundles, each of them by GetBundle, all packages. The result is one digest of
// all answers, independent of their order.
func digest(ctx context.Context, client api.RegistryClient) (string, error) {
	listed, err := listBundles(ctx, client)
	if err != nil {
		return "", err
	}
	var answers [][]byte
	var names []string
	for _, b := range listed {
		got, err := client.GetBundle(ctx,
			&api.GetBundleRequest{PkgName: b.GetPackageName(), ChannelName: b.GetChannelName(),
				CsvName: b.GetCsvName()})
		if err != nil {
			return "", fmt.Errorf("%s %s %s: %w", b.GetPackageName(), b.GetChannelName(), b.GetCsvName(), err)
		}
		answers = append(answers, marshal(b), marshal(got))
		names = append(names, b.GetPackageName())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		p, err := client.GetPackage(ctx, &api.GetPackageRequest{Name: name})
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		slices.SortFunc(p.Channels, func(a, b *api.Channel) int { return cmp.Compare(a.GetName(), b.GetName()) })
		answers = append(answers, marshal(p))
	}
	return sum(answers), nil
}

func marshal(m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // it was just received
	}
	return data
}

func sum(answers [][]byte) string {
	slices.SortFunc(answers, slices.Compare)
	h := sha256.New()
	for _, a := range answers {
		fmt.Fprintf(h, "%d\n", len(a))
		h.Write(a)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func listBundles(ctx context.Context, client api.RegistryClient) ([]*api.Bundle, error) {
	stream, err := client.ListBundles(ctx, &api.ListBundlesRequest{})
	if err != nil {
		return nil, err
	}
	var all []*api.Bundle
	for {
		b, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
}

// list returns the digest of one answer of ListBundles.
func list(ctx context.Context, client api.RegistryClient) (string, error) {
	all, err := listBundles(ctx, client)
	answers := make([][]byte, len(all))
	for i, b := range all {
		answers[i] = marshal(b)
	}
	return sum(answers), err
}

// watch runs n clients, half of which share a connection, that repeat ListBundles until SIGTERM. Every answer must be
// one of the allowed ones; it prints how often each occurred.
func watch(ctx context.Context, conn *grpc.ClientConn, n string, allowed []string,
	dial func() (*grpc.ClientConn, error), out io.Writer) error {
	clients, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	stop := make(chan struct{})
	go func() { <-ended; close(stop) }()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		seen  = map[string]int{}
		wrong []error
	)
	for i := range clients {
		own := conn
		if i%2 == 0 {
			if own, err = dial(); err != nil {
				return err
			}
			defer own.Close()
		}
		wg.Go(func() {
			client := api.NewRegistryClient(own)
			for {
				select {
				case <-stop:
					return
				default:
				}
				call, cancel := context.WithTimeout(ctx, time.Minute)
				got, err := list(call, client)
				cancel()
				mu.Lock()
				switch {
				case err != nil:
					wrong = append(wrong, err)
				case !slices.Contains(allowed, got):
					wrong = append(wrong, fmt.Errorf("an answer that no catalog gives: %s", got))
				default:
					seen[got]++
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, a := range allowed {
		fmt.Fprintf(out, "%s was answered %d times\n", a, seen[a])
		if seen[a] == 0 {
			wrong = append(wrong, fmt.Errorf("%s was never answered", a))
		}
	}
	return errors.Join(wrong...)
}
