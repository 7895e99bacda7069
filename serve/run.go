package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"
)

// DefaultPort is the port on which clients expect a catalog.
const DefaultPort = 50051

// Options say how [Run] serves. The zero value serves on a free port with the catalog's own cache.
type Options struct {
	// Port is the TCP port on all interfaces; 0 means any that is free.
	Port int
	// Listener is used instead of a port, and closed.
	Listener net.Listener
	// CacheDir and EnforceIntegrity are those of [LoadOptions].
	CacheDir         string
	EnforceIntegrity bool
	// CacheOnly fills CacheDir and returns without serving.
	CacheOnly bool
	// Refresh is that of [LoadOptions].
	Refresh RefreshFunc
	// TerminationLog is a file that gets the error with which Run ends. Empty means none.
	TerminationLog string
	// PprofAddr is where profiles are offered over HTTP. Empty means nowhere.
	PprofAddr string
	// HTTPAddr is where the catalog is offered over HTTP: catalogd's API and pages for people. Empty means nowhere.
	HTTPAddr string
	// MetricsAddr is where metrics are offered in Prometheus' format. Empty means nowhere.
	MetricsAddr string
	// TLSCert and TLSKey are the files of a certificate and its key. Both empty means no TLS.
	TLSCert, TLSKey string
	// ReloadEvery is how often the source is looked at for changes; 0 means never.
	ReloadEvery time.Duration
	Limits      Limits
	// Log gets what an operator wants to know, never anything of a request but its method. Nil drops it.
	Log *slog.Logger
	// Ready is called when the catalog is served.
	Ready func(net.Addr)
}

// ErrListen is a port that cannot be listened on.
var ErrListen = errors.New("failed to listen")

// Run serves a source until ctx ends, and then returns nil. It listens at once and answers that it is not healthy until
// the catalog is loaded. Its errors are [ErrListen], [ErrIntegrity], [ErrNoCacheDir] and those of loading.
func Run(ctx context.Context, src Source, o Options) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.TerminationLog != "" {
		t := openTerminationLog(o.TerminationLog, o.Log)
		defer func() { t.close(err) }()
	}
	if o.PprofAddr != "" {
		stop := servePprof(o.PprofAddr, o.Log)
		defer stop()
	}
	if o.CacheOnly {
		return fillCache(ctx, src, o)
	}
	l := o.Listener
	if l == nil {
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(o.Port))); err != nil {
			return fmt.Errorf("%w: %w", ErrListen, err)
		}
	}
	return serveOn(ctx, l, src, o)
}

func serveOn(ctx context.Context, l net.Listener, src Source, o Options) error {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	server := New(o.Limits, o.Log)
	served := make(chan error, 1)
	go func() {
		err := server.Serve(stop, l)
		// Without a listener there is no use in loading.
		cancel()
		served <- err
	}()
	store, err := Load(stop, src, LoadOptions{CacheDir: o.CacheDir, EnforceIntegrity: o.EnforceIntegrity, Log: o.Log})
	if err != nil {
		asked := ctx.Err() != nil
		cancel()
		if serveErr := <-served; serveErr != nil {
			return serveErr
		}
		if asked {
			return nil
		}
		return loadError(err)
	}
	packages := len(store.Packages())
	server.SetStore(store)
	o.Log.Info("serving registry", "configs", src.name, "address", l.Addr().String(), "packages", packages)
	if o.Ready != nil {
		o.Ready(l.Addr())
	}
	if ctx.Done() != nil {
		go func() {
			<-stop.Done()
			if ctx.Err() != nil {
				o.Log.Info("shutting down server")
			}
		}()
	}
	return <-served
}

func loadError(err error) error {
	if errors.Is(err, ErrIntegrity) || errors.Is(err, ErrNoCacheDir) {
		return err
	}
	return fmt.Errorf("failed to load or rebuild cache: %w", err)
}

func fillCache(ctx context.Context, src Source, o Options) error {
	if o.CacheDir == "" {
		return ErrNoCacheDir
	}
	store, err := Load(ctx, src, LoadOptions{CacheDir: o.CacheDir, EnforceIntegrity: o.EnforceIntegrity, MustWrite: true, Refresh: o.Refresh, Log: o.Log})
	if err != nil {
		return loadError(err)
	}
	return store.Close()
}

// servePprof offers profiles. A port that is taken is no reason not to serve a catalog.
func servePprof(addr string, log *slog.Logger) (stop func()) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Warn("could not start pprof endpoint", "address", addr, "error", err)
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("pprof endpoint ended", "error", err)
		}
	}()
	return func() { server.Close() }
}
