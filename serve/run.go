package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
	"github.com/operator-bindery/bindery/serve/internal/web"
)

// Defaults of commands and clients, for help texts and warnings.
const (
	// ClientMessageLimit is the size in bytes of the largest message that a gRPC client receives by default.
	ClientMessageLimit = 4 << 20
	// DefaultPort is the port on which clients expect a catalog.
	DefaultPort = 50051
	// DefaultReloadEvery is the default interval at which commands look for changes.
	DefaultReloadEvery = 10 * time.Second
	// DefaultTitle is what the pages call a catalog without another title.
	DefaultTitle = web.DefaultTitle

	// Defaults of [Limits].

	DefaultConnections     = 4096
	DefaultStreams         = 100
	DefaultHTTPConnections = 256
)

// Options configure [Run]. The zero value serves on a free port with the catalog's own cache.
type Options struct {
	// Address is the name or address of the interface to listen on. Empty means all.
	Address string
	// Port is the TCP port; 0 means any free one.
	Port int
	// Listener replaces Address and Port. Run closes it.
	Listener net.Listener
	// CacheDir and EnforceIntegrity are those of [LoadOptions].
	CacheDir         string
	EnforceIntegrity bool
	// CacheOnly fills CacheDir and returns without serving.
	CacheOnly bool
	// Refresh is called for CacheOnly if CacheDir contains a cache of opm's: it rebuilds the cache in dir from the
	// catalog, in the format ([FormatJSON] or [FormatPogreb]) of that cache. If Refresh is nil, such a directory is
	// refused.
	Refresh func(ctx context.Context, catalog fs.FS, dir, format string) error
	// TerminationLog is a file for the error with which Run ends. Empty means none.
	TerminationLog string
	// PprofAddr is the address of an HTTP service with profiles. Empty means none.
	PprofAddr string
	// PprofCapture takes a profile of the start, available at PprofAddr.
	PprofCapture bool
	// HTTPAddr is the address of the HTTP service: catalogd's API and pages for people. Empty means none.
	HTTPAddr string
	// HTTPListener replaces HTTPAddr. Run closes it.
	HTTPListener net.Listener
	// HTTPName is the catalog's only name below /catalogs/. Empty means any.
	HTTPName string
	// HTTPTitle is what the pages call the catalog. Empty means [DefaultTitle].
	HTTPTitle string
	// Judge says for the pages for which changes of definitions OLM v1 refuses an upgrade. Nil leaves that open: it needs
	// libraries that are half as large as a server.
	Judge upgrade.Judge
	// MetricsAddr is the address of metrics in Prometheus' format over plain HTTP. Empty means none.
	MetricsAddr string
	// MetricsListener replaces MetricsAddr. Run closes it.
	MetricsListener net.Listener
	// TLSCert and TLSKey are the files of a certificate and its key, for gRPC and HTTPAddr. Both empty means no TLS.
	TLSCert, TLSKey string
	// ReloadEvery is the interval at which the source and the TLS files are checked for changes; 0 means never.
	ReloadEvery time.Duration
	// Reload triggers reloading the source and the TLS files for each value. Nil means never.
	Reload <-chan os.Signal
	Limits Limits
	// Version is the program's version for the metrics; the server of a catalog image has none.
	Version string
	// Log receives reports for operators, with nothing of a request except its method. Nil drops them.
	Log *slog.Logger
	// Ready is called when the catalog is served.
	Ready func(net.Addr)

	httpGates web.Gates // hide routes of catalogd's API below /catalogs/
	httpHosts web.Hosts // names that requests over loopback may have

	gates, hosts string // values of flags
}

// SetHTTPHosts sets names of this server, separated by commas. Over loopback the HTTP services answer no other names
// than these, localhost and addresses, and the sitemap has no other.
func (o *Options) SetHTTPHosts(text string) (err error) {
	o.httpHosts, err = web.ParseHosts(text)
	return err
}

// CheckHTTPName refuses an HTTPName that is no DNS subdomain (RFC 1123), which no ClusterCatalog can have.
func (o *Options) CheckHTTPName() error { return web.CheckName(o.HTTPName) }

// SetHTTPGates sets the routes of catalogd's API below /catalogs/ that are on: "metas" and "graphql", separated by
// commas, or "none". By default both are.
func (o *Options) SetHTTPGates(text string) (err error) {
	o.httpGates, err = web.ParseGates(text)
	return err
}

// Run serves a source until ctx ends, and then returns nil. It listens immediately and is unhealthy until the catalog
// is loaded. Later, if a changed catalog cannot be loaded, the old one is kept. The source is closed.
//
// Its errors are [ErrListen], [ErrIntegrity], [ErrNoCacheDir], [ErrTLSFlags] and those of loading.
func Run(ctx context.Context, src Source, o Options) (err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.TerminationLog != "" {
		t := openTerminationLog(o.TerminationLog, o.Log)
		defer func() { t.close(err) }()
	}
	profiles := openProfiles(o.PprofAddr, o.PprofCapture, o.httpHosts, o.Log)
	defer profiles.close()
	if o.CacheOnly {
		return errors.Join(fillCache(ctx, src, o), src.Close())
	}
	l := o.Listener
	if l == nil {
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.Port))); err != nil {
			return errors.Join(fmt.Errorf("%w: %w", ErrListen, err), src.Close())
		}
	}
	r := &running{Options: o, profiles: profiles, listener: l}
	if err := r.open(ctx, src); err != nil {
		r.metrics.close(metricsDrain)
		r.closeSite()
		return errors.Join(err, l.Close(), src.Close())
	}
	return r.serve(ctx)
}

// running is a server with all its services.
type running struct {
	Options
	profiles *profiles
	listener net.Listener
	cert     *certificate
	server   *server
	loader   *catalogLoader
	metrics  *endpoint
	site     *web.Site // nil if nothing is offered over HTTP
	http     *endpoint
	requests httpMetrics // of http
}

// open opens everything that can fail before the catalog is loaded.
func (r *running) open(ctx context.Context, src Source) (err error) {
	r.Limits = r.Limits.withDefaults()
	if r.cert, err = openCertificate(ctx, r.Options); err != nil {
		return err
	}
	var more []grpc.ServerOption
	if r.cert != nil {
		more = append(more, grpc.Creds(credentials.NewTLS(r.cert.config())))
	}
	r.server = newServer(r.Limits, r.Log, more...)
	r.loader = &catalogLoader{
		src: src.without(r.CacheDir), every: r.ReloadEvery, log: r.Log, use: r.replaceCatalog,
		options: LoadOptions{CacheDir: r.CacheDir, EnforceIntegrity: r.EnforceIntegrity, Log: r.Log},
	}
	if err := r.openSite(ctx); err != nil {
		return err
	}
	if r.MetricsAddr != "" || r.MetricsListener != nil {
		h := &exposition{server: r.server, loads: &r.loader.metrics, cert: r.cert, version: r.Version}
		if r.site != nil {
			h.http = &r.requests
		}
		if r.metrics, err = openEndpoint(ctx, "metrics-addr", r.MetricsAddr, r.MetricsListener, nil, r.httpHosts, h,
			r.Limits.HTTP, r.Log); err != nil {
			return err
		}
	}
	return nil
}

// replaceCatalog replaces the served catalog. Calls in progress keep the old one.
func (r *running) replaceCatalog(h held) {
	if r.site != nil {
		// The site comes first: closing the old store closes its content, which the site must not use any more.
		r.site.SetContent(h.content)
	}
	r.server.SetStore(h)
}

func (r *running) serve(ctx context.Context) error {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := guard.Call(func() error { return r.server.Serve(stop, r.listener) })
		// Loading is useless without a listener.
		cancel()
		served <- err
	}()
	// Metrics are available until the last call has ended. HTTP drains at the same time as gRPC.
	defer r.metrics.close(metricsDrain)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-stop.Done()
		r.closeSite()
	}()
	defer func() {
		cancel()
		<-drained
	}()
	h, err := r.loader.loadFirst(stop)
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
	packages := len(h.Packages())
	r.replaceCatalog(h)
	r.profiles.started()
	r.Log.Info("serving registry", "configs", r.loader.src.name, "address", r.listener.Addr().String(), "packages",
		packages)
	if r.Ready != nil {
		r.Ready(r.listener.Addr())
	}
	go new(giveBack).watch(stop)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.loader.watch(stop, r.Reload, r.cert)
		if ctx.Err() != nil {
			r.Log.Info("shutting down server")
		}
	}()
	err = <-served
	// A hanging file system must not keep the server from stopping.
	select {
	case <-watched:
	case <-time.After(time.Second):
	}
	return err
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
	if o.Refresh != nil && !o.EnforceIntegrity && src.fsys != nil {
		// opm's own server may need this cache, and like opm this keeps the existing format.
		if format := opmFormat(os.DirFS(o.CacheDir)); format != "" {
			o.Log.Info("refreshing opm's cache", "configs", src.name, "cache", o.CacheDir, "backend", format)
			if err := o.Refresh(ctx, src.without(o.CacheDir).fsys, o.CacheDir, format); err != nil {
				return loadError(fmt.Errorf("cache directory: %w", err))
			}
			return nil
		}
	}
	store, err := Load(ctx, src,
		LoadOptions{CacheDir: o.CacheDir, EnforceIntegrity: o.EnforceIntegrity, MustWrite: true, Log: o.Log})
	if err != nil {
		return loadError(err)
	}
	return store.Close()
}
