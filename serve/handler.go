package serve

import (
	"context"
	"path"

	"google.golang.org/grpc"
)

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
