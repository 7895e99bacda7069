// Package pages looks at the pages of a served catalog in a browser.
//
// Its tests start the server program on a catalog, drive Chromium, and check what only a browser knows: the rules of
// axe-core in light and dark, on a phone and on a desk, what the keyboard reaches, what is requested, what the console
// says, and what the script does. With -update they write the screenshots of the documentation.
//
// They need chromium, tar, zstd, and the axe-core package in node_modules ("npm ci").
package pages

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the screenshots of the documentation")

// root is the directory of the project.
const root = "../.."

var (
	site    string          // the address of the server
	catalog string          // the directory that it serves
	browser context.Context // the browser, in which each test has a tab
)

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		status = 1
	}
	os.Exit(status)
}

// run starts the server and the browser for all tests.
func run(m *testing.M) (int, error) {
	work, err := os.MkdirTemp("", "pages")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	stop, err := startServer(work)
	if err != nil {
		return 0, err
	}
	defer stop()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(work, "profile")),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	var cancelBrowser context.CancelFunc
	browser, cancelBrowser = chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	defer cancelBrowser()
	if err := chromedp.Run(browser); err != nil {
		return 0, fmt.Errorf("start chromium: %w", err)
	}
	return m.Run(), nil
}

// compile builds the program of the project that has a file's name.
func compile(program string) error {
	build := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "build", "-ldflags=-s -w", "-o", program, "./cmd/"+filepath.Base(program))
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", program, err, out)
	}
	return nil
}

// startServer builds the server program and serves a catalog of real packages and those of testdata.
func startServer(work string) (stop func(), err error) {
	catalog = filepath.Join(work, "catalog")
	if err := os.CopyFS(catalog, os.DirFS("testdata/catalog")); err != nil {
		return nil, err
	}
	unpack := exec.Command("tar", "--zstd", "-xf", filepath.Join(root, "testdata/real/catalog-v4.22.tar.zst"), "-C",
		catalog)
	if out, err := unpack.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("unpack the catalog: %w: %s", err, out)
	}
	program := filepath.Join(work, "opm-server")
	if err := compile(program); err != nil {
		return nil, err
	}
	server := exec.Command(program, "serve", catalog, "-p", "0", "--http-addr", "127.0.0.1:0", "--log-format", "json",
		"--title", "Community operators", "--cache-dir", filepath.Join(work, "cache"), "-t", "")
	stderr, err := server.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		server.Process.Kill()
		server.Wait()
	}
	var said strings.Builder
	ready := make(chan struct{})
	go func() {
		served, found := false, false
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, For, Address string }
			_ = json.Unmarshal(lines.Bytes(), &line)
			if line.For == "http-addr" {
				site, found = "http://"+line.Address, true
			}
			served = served || line.Msg == "serving registry"
			if found && served && ready != nil {
				close(ready)
				ready = nil
			}
			if ready != nil {
				said.WriteString(lines.Text() + "\n")
			}
		}
	}()
	select {
	case <-ready:
		return stop, nil
	case <-time.After(time.Minute):
		stop()
		return nil, fmt.Errorf("the server does not start: %s", said.String())
	}
}

// screen is how a page is looked at.
type screen struct {
	name          string
	width, height int64
	dark          bool
}

var screens = []screen{{"desk", 1280, 900, false}, {"desk-dark", 1280, 900, true}, {"phone", 360, 740, false},
	{"phone-dark", 360, 740, true}}

// tab is a tab of the browser. What its pages request and complain about is kept.
type tab struct {
	context.Context
	mu       sync.Mutex
	requests map[network.RequestID]string
	sizes    map[string]float64 // transferred bytes by URL
	said     []string
	from     string // what addresses of requests begin with
}

// newTab opens a tab for a test.
func newTab(t *testing.T, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancelTime)
	v := &tab{Context: ctx, requests: map[network.RequestID]string{}, sizes: map[string]float64{}, from: site + "/"}
	chromedp.ListenTarget(ctx, v.listen)
	scheme := "light"
	if s.dark {
		scheme = "dark"
	}
	v.do(t, network.Enable(), log.Enable(), runtime.Enable(),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme",
			Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}}),
		chromedp.EmulateViewport(s.width, s.height))
	return v
}

func (v *tab) listen(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.requests[e.RequestID] = e.Request.URL
	case *network.EventLoadingFinished:
		v.sizes[v.requests[e.RequestID]] += e.EncodedDataLength
	case *log.EventEntryAdded:
		v.said = append(v.said, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		v.said = append(v.said, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		v.said = append(v.said, "console: "+string(e.Type))
	}
}

// do runs actions.
func (v *tab) do(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(v, actions...); err != nil {
		t.Fatal(err)
	}
}

// open loads a page.
func (v *tab) open(t *testing.T, path string) {
	t.Helper()
	v.do(t, chromedp.Navigate(site+path))
}

// value evaluates an expression.
func value[T any](t *testing.T, v *tab, expression string) (out T) {
	t.Helper()
	v.do(t, chromedp.Evaluate(expression, &out))
	return out
}

// until waits for an expression to be true, over the loading of a new page too.
func (v *tab) until(t *testing.T, expression string) {
	t.Helper()
	for {
		err := chromedp.Run(v, chromedp.Poll(expression, nil, chromedp.WithPollingTimeout(10*time.Second)))
		if err == nil {
			return
		}
		if v.Err() != nil || errors.Is(err, chromedp.ErrPollingTimeout) {
			t.Fatalf("%s: %v", expression, err)
		}
	}
}

// complaints returns what is wrong with what the tab requested and said; the status of the page itself is not.
func (v *tab) complaints() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, url := range v.requests {
		if !strings.HasPrefix(url, v.from) {
			out = append(out, "a request for "+url)
		}
	}
	for _, text := range v.said {
		if !strings.Contains(text, "404 (Not Found) "+site+"/missing") {
			out = append(out, text)
		}
	}
	return out
}
