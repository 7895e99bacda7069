// Command load measures a catalog server over gRPC from a separate process. It starts the server, or connects to a
// running one, and prints a table on standard error and JSON on standard output.
//
//	load [flags] PROGRAM ARGUMENT...    starts PROGRAM ARGUMENT... --port PORT for each measurement
//	load [flags] -addr HOST:PORT        measures a running server, including its memory with -pid
//
// The modes (-mode, several with commas) are
//
//	start    time from the start to the health SERVING and to the first answer of GetBundle
//	list     ListBundles repeatedly, by -clients clients with a connection each
//	get      GetBundle of bundles in random order, by -clients clients
//	slow     -crowd clients read one message of ListBundles a second, while -clients ask for bundles
//	stopped  -crowd clients begin ListBundles and stop reading, while -clients ask for bundles
//
// Answers are received and counted but not decoded, unless -decode is given, so that the server is measured and not the
// client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	addr, modes    string
	pid            int
	clients, crowd int
	runs           int
	time           time.Duration
	seed           uint64
	decode         bool
	server         []string
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "", "address of a server that runs")
	flag.IntVar(&o.pid, "pid", 0, "process of that server, to see its memory")
	flag.StringVar(&o.modes, "mode", "start,list,get", "what to measure")
	flag.IntVar(&o.clients, "clients", 1, "clients that ask as fast as they can, each with a connection of its own")
	flag.IntVar(&o.crowd, "crowd", 1000, "clients of the modes slow and stopped")
	flag.IntVar(&o.runs, "runs", 5, "number of starts in the mode start; the median is printed")
	flag.DurationVar(&o.time, "time", 3*time.Second, "time of each measurement")
	flag.Uint64Var(&o.seed, "seed", 1, "of the random order")
	flag.BoolVar(&o.decode, "decode", false, "decode every answer, as a usual client does")
	flag.Parse()
	o.server = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// modes are the measurements by name.
var modes = map[string]func(context.Context, *target, options) (*result, error){
	"list": list, "get": get, "slow": slow, "stopped": stopped,
}

func run(ctx context.Context, o options, out, table io.Writer) error {
	if (o.addr == "") == (len(o.server) == 0) {
		return errors.New("give either -addr or the server's command line")
	}
	var results []*result
	for mode := range strings.SplitSeq(o.modes, ",") {
		r, err := measure(ctx, mode, o)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		results = append(results, r)
	}
	printTable(table, results)
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(results)
}

func measure(ctx context.Context, mode string, o options) (*result, error) {
	if mode == "start" {
		if len(o.server) == 0 {
			return nil, errors.New("it needs the server's command line")
		}
		return starts(ctx, o)
	}
	do := modes[mode]
	if do == nil {
		return nil, errors.New("no such mode")
	}
	t := &target{addr: o.addr, pid: o.pid, decode: o.decode}
	if o.addr == "" {
		s, err := startServer(o.server)
		if err != nil {
			return nil, err
		}
		defer s.stop()
		t.addr, t.pid = s.addr, s.process.Pid
		if _, err := t.ready(ctx); err != nil {
			return nil, s.failed(err)
		}
	}
	if err := t.findKeys(ctx); err != nil {
		return nil, err
	}
	before := process(t.pid)
	r, err := do(ctx, t, o)
	if err != nil {
		return nil, err
	}
	after := process(t.pid)
	r.Mode, r.RSSBefore, r.RSSAfter, r.RSSPeak = mode, before.rss, after.rss, after.peak
	r.ServerCPU = after.cpu - before.cpu
	return r, nil
}

// result is the result of one mode. Times are in seconds, sizes in bytes.
type result struct {
	Mode    string  `json:"mode"`
	Clients int     `json:"clients,omitempty"`
	Crowd   int     `json:"crowd,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`

	Calls    int64 `json:"calls,omitempty"`
	Messages int64 `json:"messages,omitempty"`
	Bytes    int64 `json:"bytes,omitempty"`
	Errors   int64 `json:"errors,omitempty"`
	// Codes are the numbers of errors by gRPC code.
	Codes map[string]int64 `json:"codes,omitempty"`

	P50  float64 `json:"p50,omitempty"`
	P99  float64 `json:"p99,omitempty"`
	P999 float64 `json:"p999,omitempty"`
	Max  float64 `json:"max,omitempty"`

	Listening   float64 `json:"listening,omitempty"`
	Serving     float64 `json:"serving,omitempty"`
	FirstAnswer float64 `json:"firstAnswer,omitempty"`
	StartCPU    float64 `json:"startCPU,omitempty"`

	ServerCPU float64 `json:"serverCPU,omitempty"`
	RSSBefore int64   `json:"rssBefore,omitempty"`
	RSSDuring int64   `json:"rssDuring,omitempty"` // with the whole crowd there
	RSSAfter  int64   `json:"rssAfter,omitempty"`
	RSSPeak   int64   `json:"rssPeak,omitempty"` // VmHWM
	Files     int     `json:"files,omitempty"`   // maximum number of open file descriptors
}

func printTable(w io.Writer, results []*result) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw,
		"mode\tclients\tcrowd\tcalls/s\tmessages/s\tMB/s\terrors\tp50 ms\tp99 ms\tp999 ms\tmax ms\tserver CPU s\tRSS "+
			"MB before\tduring\tafter\tpeak\tfiles\t")
	for _, r := range results {
		if r.Mode == "start" {
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%.1f\t%.0f\t%.1f\t%d\t%s\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%s\t%d\t\n", r.Mode,
			r.Clients, r.Crowd, rate(r.Calls, r.Seconds), rate(r.Messages, r.Seconds), rate(r.Bytes, r.Seconds)/1e6,
			r.Errors, ms(r.P50), ms(r.P99), ms(r.P999), ms(r.Max), r.ServerCPU, mb(r.RSSBefore), mb(r.RSSDuring),
			mb(r.RSSAfter), mb(r.RSSPeak), r.Files)
	}
	tw.Flush()
	for _, r := range results {
		if r.Mode == "start" {
			fmt.Fprintf(w,
				"start: listening %s ms, SERVING %s ms, first answer %s ms, CPU %s ms, RSS %s MB, peak %s MB\n",
				ms(r.Listening), ms(r.Serving), ms(r.FirstAnswer), ms(r.StartCPU), mb(r.RSSAfter), mb(r.RSSPeak))
		}
		if r.Errors > 0 {
			fmt.Fprintf(w, "%s: errors by code: %v\n", r.Mode, r.Codes)
		}
	}
}

func rate(n int64, seconds float64) float64 {
	if seconds == 0 {
		return 0
	}
	return float64(n) / seconds
}

func ms(seconds float64) string { return fmt.Sprintf("%.2f", seconds*1e3) }
func mb(n int64) string         { return fmt.Sprintf("%.1f", float64(n)/1e6) }
