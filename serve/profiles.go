package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	httppprof "net/http/pprof"
	"runtime/pprof"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/operator-bindery/bindery/serve/internal/web"
)

// profiles are offered over HTTP to developers of the program.
type profiles struct {
	log    *slog.Logger
	server *http.Server // nil if nothing is offered

	mu      sync.Mutex
	running bool         // the profile of the start is being taken
	start   bytes.Buffer // the profile of the start, once it is complete
	ready   bool
}

// openProfiles listens on an address. A catalog is served even if the port is in use. With capture, a CPU profile is
// taken from now until [profiles.started].
func openProfiles(addr string, capture bool, hosts web.Hosts, log *slog.Logger) *profiles {
	p := &profiles{log: log}
	if addr == "" {
		if capture {
			log.Warn("no profile of the start is captured, because --pprof-addr does not say where to offer it")
		}
		return p
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Warn("could not start pprof endpoint", "address", addr, "error", err)
		return p
	}
	if capture {
		if err := pprof.StartCPUProfile(&p.start); err != nil {
			log.Warn("no profile of the start is captured", "error", err)
		} else {
			p.running = true
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", httppprof.Index)
	mux.HandleFunc("/debug/pprof/profile", httppprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", httppprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", httppprof.Symbol)
	mux.HandleFunc("/debug/pprof/startup/cpu", p.serveStart)
	p.server = &http.Server{Handler: hosts.Guard(mux), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	log.Info("listening", "for", "pprof-addr", "address", l.Addr().String())
	go func() {
		if err := p.server.Serve(netutil.LimitListener(l, 16)); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("pprof endpoint ended", "error", err)
		}
	}()
	return p
}

// started ends the profile of the start.
func (p *profiles) started() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running {
		pprof.StopCPUProfile()
		p.running, p.ready = false, true
	}
}

func (p *profiles) serveStart(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	ready, running := p.ready, p.running
	p.mu.Unlock()
	switch {
	case ready:
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Write(p.start.Bytes())
	case running:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the server is still starting", http.StatusServiceUnavailable)
	default:
		http.Error(w, "no profile of the start was captured: start with --pprof-capture-profiles", http.StatusNotFound)
	}
}

// close stops everything immediately: a profile may take very long.
func (p *profiles) close() {
	p.started()
	if p.server != nil {
		p.server.Close()
	}
}
