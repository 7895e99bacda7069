package serve

import (
	"context"
	"fmt"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/operator-bindery/bindery/internal/api"
)

// registry answers the calls of api.Registry and api.ExperimentalRegistry. Its texts are opm's; unlike in opm, errors
// about missing items have the code NotFound.
type registry struct {
	current func() (*catalog, error) // the catalog, acquired
	reader  reader
}

func notFound(format string, args ...any) error {
	return status.Errorf(codes.NotFound, format, args...)
}

func (r *registry) listPackages(_ context.Context, c *catalog, _ *api.ListPackageRequest,
	send func(answer) error) error {
	for _, p := range c.packages {
		if err := send(small(packageName(p.name))); err != nil {
			return err
		}
	}
	return nil
}

func (r *registry) getPackage(ctx context.Context, c *catalog, req *api.GetPackageRequest) (answer, error) {
	p, ok := c.byName[req.GetName()]
	if !ok {
		return answer{}, notFound("package %q not found", req.GetName())
	}
	return r.reader.read(ctx, p, nil, p.pkg)
}

func (c *catalog) channel(pkg, channel string) (*Package, *indexChannel, error) {
	p, ok := c.byName[pkg]
	if !ok {
		return nil, nil, notFound("package %q not found", pkg)
	}
	ch := p.channel(channel)
	if ch == nil {
		return nil, nil, notFound("package %q, channel %q not found", pkg, channel)
	}
	return p, ch, nil
}

// bundle returns the complete api.Bundle of an entry, without its edges.
func (r *registry) bundle(ctx context.Context, p *Package, c *indexChannel, e *indexEntry) (answer, error) {
	b := &p.bundles[e.bundle]
	return r.reader.read(ctx, p, appendEntry(nil, c.name, e, false), b.light, b.heavy)
}

func (r *registry) getBundle(ctx context.Context, c *catalog, req *api.GetBundleRequest) (answer, error) {
	p, ch, err := c.channel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return answer{}, err
	}
	e := p.entry(ch, req.GetCsvName())
	if e == nil {
		return answer{}, notFound("package %q, channel %q, bundle %q not found", req.GetPkgName(), req.GetChannelName(),
			req.GetCsvName())
	}
	return r.bundle(ctx, p, ch, e)
}

func (r *registry) getBundleForChannel(ctx context.Context, c *catalog,
	req *api.GetBundleInChannelRequest) (answer, error) {
	p, ch, err := c.channel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return answer{}, err
	}
	return r.bundle(ctx, p, ch, &ch.entries[ch.head])
}

func (r *registry) getBundleThatReplaces(ctx context.Context, c *catalog,
	req *api.GetReplacementRequest) (answer, error) {
	if _, ok := c.byName[req.GetPkgName()]; !ok {
		return answer{}, notFound("package %s not found", req.GetPkgName())
	}
	p, ch, err := c.channel(req.GetPkgName(), req.GetChannelName())
	if err != nil {
		return answer{}, err
	}
	e := replacement(ch, req.GetCsvName())
	if e == nil {
		return answer{}, notFound("no entry found for package %q, channel %q", req.GetPkgName(), req.GetChannelName())
	}
	return r.bundle(ctx, p, ch, e)
}

func (r *registry) getChannelEntriesThatReplace(ctx context.Context, c *catalog, req *api.GetAllReplacementsRequest,
	send func(answer) error) error {
	found := false
	for _, p := range c.packages {
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		var err error
		replacing(p, req.GetCsvName(), func(entry []byte) bool {
			found = true
			err = send(small(entry))
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if !found {
		return notFound("no channel entries found that replace %s", req.GetCsvName())
	}
	return nil
}

// providersRequest is the common part of the three requests for providers. The plural has no effect.
type providersRequest interface {
	GetGroup() string
	GetVersion() string
	GetKind() string
}

func requestedAPI(req providersRequest) gvk {
	return gvk{req.GetGroup(), req.GetVersion(), req.GetKind()}
}

func (k gvk) String() string {
	return fmt.Sprintf("group:%q version:%q kind:%q", k.group, k.version, k.kind)
}

// sendProviders sends the entries that provide an API, of heads only or of all bundles.
func sendProviders(ctx context.Context, c *catalog, k gvk, heads bool, send func(answer) error) error {
	found := false
	for _, p := range c.packages {
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		var err error
		providing(p, k, heads, func(ch *indexChannel, e *indexEntry, replaces string) bool {
			found = true
			err = send(small(channelEntry(p.name, ch.name, p.entryName(e), replaces)))
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if !found {
		return notFound("no channel entries found that provide %v", k)
	}
	return nil
}

func (r *registry) getChannelEntriesThatProvide(ctx context.Context, c *catalog, req *api.GetAllProvidersRequest,
	send func(answer) error) error {
	return sendProviders(ctx, c, requestedAPI(req), false, send)
}

func (r *registry) getLatestChannelEntriesThatProvide(ctx context.Context, c *catalog,
	req *api.GetLatestProvidersRequest, send func(answer) error) error {
	return sendProviders(ctx, c, requestedAPI(req), true, send)
}

func (r *registry) getDefaultBundleThatProvides(ctx context.Context, c *catalog,
	req *api.GetDefaultProviderRequest) (answer, error) {
	k, found := requestedAPI(req), false
	for _, p := range c.packages {
		var head *indexEntry
		channel := p.channel(p.defaultChannel)
		providing(p, k, true, func(ch *indexChannel, e *indexEntry, _ string) bool {
			found = true
			if ch == channel {
				head = e
			}
			return head == nil
		})
		if head != nil {
			return r.bundle(ctx, p, channel, head)
		}
	}
	if found {
		return answer{}, notFound("no entry found that provides %v", k)
	}
	return answer{}, notFound("no channel entries found that provide %v", k)
}

// listBundles sends the pages that all calls share. An answer that is too large for a page, or a page without memory,
// is read for this call alone.
func (r *registry) listBundles(ctx context.Context, c *catalog, _ *api.ListBundlesRequest,
	send func(answer) error) error {
	ahead := make(chan struct{}, c.pages.beginCall())
	defer c.pages.endCall()
	sent := func() { <-ahead }
	for i := range c.pages.list {
		g := &c.pages.list[i]
		var (
			buf  mem.Buffer
			ends []int
			err  error
		)
		if !g.loose {
			select {
			case ahead <- struct{}{}:
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
			if buf, ends, err = c.pages.load(ctx, c, g, sent); err != nil {
				return readError(ctx, err)
			}
			if buf == nil {
				sent()
			}
		}
		if buf == nil {
			err = r.sendLoose(ctx, c, g, send)
		} else {
			err = sendPage(buf, ends, send)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendPage sends the answers of a page as parts of its buffer, which it frees.
func sendPage(buf mem.Buffer, ends []int, send func(answer) error) error {
	defer buf.Free()
	start := 0
	for _, end := range ends {
		if err := send(answer{mem.BufferSlice{buf.Slice(start, end)}}); err != nil {
			return err
		}
		start = end
	}
	return nil
}

// sendLoose sends the answers of a page one by one.
func (r *registry) sendLoose(ctx context.Context, c *catalog, g *page, send func(answer) error) (err error) {
	c.entries(g, func(ref channelRef, e *indexEntry) bool {
		b := &ref.pkg.bundles[e.bundle]
		records := []record{b.light, b.heavy}
		if b.hasImage {
			records = records[:1] // clients that list bundles take the manifests from the image
		}
		var a answer
		if a, err = r.reader.read(ctx, ref.pkg, appendEntry(nil, ref.channel.name, e, true), records...); err == nil {
			err = send(a)
		}
		return err == nil
	})
	return err
}

// register adds the services to a gRPC server. The generated handlers would decode and encode every answer, so the
// generated service descriptions get other handlers.
func (r *registry) register(s grpc.ServiceRegistrar) {
	desc := api.Registry_ServiceDesc
	desc.HandlerType = nil
	desc.Methods = []grpc.MethodDesc{
		unary(r, api.Registry_GetPackage_FullMethodName, r.getPackage),
		unary(r, api.Registry_GetBundle_FullMethodName, r.getBundle),
		unary(r, api.Registry_GetBundleForChannel_FullMethodName, r.getBundleForChannel),
		unary(r, api.Registry_GetBundleThatReplaces_FullMethodName, r.getBundleThatReplaces),
		unary(r, api.Registry_GetDefaultBundleThatProvides_FullMethodName, r.getDefaultBundleThatProvides),
	}
	desc.Streams = []grpc.StreamDesc{
		stream(r, api.Registry_ListPackages_FullMethodName, r.listPackages),
		stream(r, api.Registry_GetChannelEntriesThatReplace_FullMethodName, r.getChannelEntriesThatReplace),
		stream(r, api.Registry_GetChannelEntriesThatProvide_FullMethodName, r.getChannelEntriesThatProvide),
		stream(r, api.Registry_GetLatestChannelEntriesThatProvide_FullMethodName, r.getLatestChannelEntriesThatProvide),
		stream(r, api.Registry_ListBundles_FullMethodName, r.listBundles),
	}
	s.RegisterService(&desc, nil)

	experimental := api.ExperimentalRegistry_ServiceDesc
	experimental.HandlerType = nil
	experimental.Methods = nil
	experimental.Streams = []grpc.StreamDesc{
		stream(r, api.ExperimentalRegistry_ExperimentalListPackageCustomSchemas_FullMethodName,
			r.listPackageCustomSchemas),
	}
	s.RegisterService(&experimental, nil)
}

// acknowledgeHeader must be "true" in the request: the client accepts that the method may be removed.
const acknowledgeHeader = "x-acknowledge-experimental"

func (r *registry) listPackageCustomSchemas(ctx context.Context, c *catalog,
	req *api.ExperimentalListPackageCustomSchemasRequest, send func(answer) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if !slices.Contains(md.Get(acknowledgeHeader), "true") {
		return nil
	}
	switch {
	case req.GetSchema() == "":
		return status.Error(codes.InvalidArgument, "schema must be set")
	case !isCustomName(req.GetSchema()):
		return status.Errorf(codes.InvalidArgument, "invalid schema %q", req.GetSchema())
	case req.GetPackageName() != "" && !isCustomName(req.GetPackageName()):
		return status.Errorf(codes.InvalidArgument, "invalid package name %q", req.GetPackageName())
	}
	p, ok := c.customs[req.GetPackageName()]
	if !ok {
		return nil
	}
	for _, custom := range p.customs {
		if custom.schema != req.GetSchema() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return status.FromContextError(err).Err()
		}
		a, err := r.reader.read(ctx, p, nil, custom.record)
		if err != nil {
			return err
		}
		if err := send(a); err != nil {
			return err
		}
	}
	return nil
}

// isCustomName implements opm's rule for names of custom blobs: letters, digits, dot, underscore and hyphen, beginning
// with a letter or digit.
func isCustomName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}

// unary returns the handler of a method with one answer.
func unary[Request any](r *registry, fullMethod string,
	call func(context.Context, *catalog, *Request) (answer, error)) grpc.MethodDesc {
	handle := func(ctx context.Context, req any) (any, error) {
		c, err := r.current()
		if err != nil {
			return nil, err
		}
		defer c.release()
		a, err := call(ctx, c, req.(*Request))
		if err != nil {
			return nil, err
		}
		return a, nil
	}
	return grpc.MethodDesc{
		MethodName: path.Base(fullMethod),
		Handler: func(srv any, ctx context.Context, dec func(any) error,
			interceptor grpc.UnaryServerInterceptor) (any, error) {
			req := new(Request)
			if err := dec(req); err != nil {
				return nil, err
			}
			if interceptor == nil {
				return handle(ctx, req)
			}
			return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: fullMethod}, handle)
		},
	}
}

// stream returns the handler of a method with many answers. Sending waits while the client does not read.
func stream[Request any](r *registry, fullMethod string,
	call func(context.Context, *catalog, *Request, func(answer) error) error) grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName:    path.Base(fullMethod),
		ServerStreams: true,
		Handler: func(_ any, s grpc.ServerStream) error {
			req := new(Request)
			if err := s.RecvMsg(req); err != nil {
				return err
			}
			c, err := r.current()
			if err != nil {
				return err
			}
			defer c.release()
			return call(s.Context(), c, req, func(a answer) error { return s.SendMsg(a) })
		},
	}
}
