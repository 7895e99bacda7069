package serve

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// health is the health of the whole server. As in opm it is the answer for any service name: clients ask for the empty
// name, for "Registry" and for "api.Registry".
type health struct {
	healthpb.UnimplementedHealthServer

	mu      sync.Mutex
	serving bool
	changed chan struct{} // closed at the next change
	stopped chan struct{} // closed when the server stops
}

func newHealth() *health {
	return &health{changed: make(chan struct{}), stopped: make(chan struct{})}
}

// stop sets the health to not serving for good and ends all watches, which would otherwise keep a server from stopping.
// It must be called once.
func (h *health) stop() {
	h.set(false)
	close(h.stopped)
}

// set changes the health and wakes all watchers.
func (h *health) set(serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.stopped:
		serving = false // even if a catalog is loaded afterwards
	default:
	}
	if h.serving == serving {
		return
	}
	h.serving = serving
	close(h.changed)
	h.changed = make(chan struct{})
}

// get returns the health, and a channel that is closed when it changes.
func (h *health) get() (*healthpb.HealthCheckResponse, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := healthpb.HealthCheckResponse_NOT_SERVING
	if h.serving {
		s = healthpb.HealthCheckResponse_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: s}, h.changed
}

func (h *health) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	now, _ := h.get()
	return now, nil
}

func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	now, _ := h.get()
	return &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{"": now}}, nil
}

// Watch sends the current health and every change, until the client goes away or the server stops.
func (h *health) Watch(_ *healthpb.HealthCheckRequest, s healthpb.Health_WatchServer) error {
	for {
		now, changed := h.get()
		if err := s.Send(now); err != nil {
			return err
		}
		last := now.GetStatus()
		select {
		case <-changed:
		case <-h.stopped:
			if now, _ := h.get(); now.GetStatus() != last {
				if err := s.Send(now); err != nil {
					return err
				}
			}
			return status.Error(codes.Unavailable, "the server is stopping")
		case <-s.Context().Done():
			return status.Error(codes.Canceled, "the watch has ended")
		}
	}
}
