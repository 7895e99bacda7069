package serve

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// answer is a message in wire form. Its buffers are passed to the transport without copying.
type answer struct{ data mem.BufferSlice }

// small returns an answer of a few bytes.
func small(b []byte) answer { return answer{mem.BufferSlice{mem.SliceBuffer(b)}} }

// codec passes answers through and leaves all other messages (requests, health, reflection) to the standard codec.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(answer); ok {
		return a.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// reader reads answers into memory that counts against the budget until the transport has sent it: however many clients
// ask and however slowly they read, no more than the budget is used.
type reader struct {
	budget *budget
}

// read returns one or more records of a package as one buffer, followed by tail.
func (r reader) read(ctx context.Context, p *Package, tail []byte, records ...record) (answer, error) {
	size := len(tail)
	for _, rec := range records {
		size += int(rec.length)
	}
	buf, pool, err := r.budget.get(ctx, size)
	if err != nil {
		return answer{}, err
	}
	at := 0
	for _, rec := range records {
		if err := p.read((*buf)[at:at+int(rec.length)], rec); err != nil {
			pool.Put(buf)
			return answer{}, readError(ctx, err)
		}
		at += int(rec.length)
	}
	copy((*buf)[at:], tail)
	return answer{mem.BufferSlice{mem.NewBuffer(buf, pool)}}, nil
}

// readError returns the status of a call for which reading failed.
func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.DataLoss, err.Error())
}
