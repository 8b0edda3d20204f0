package responder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

// Server answers on all ports of the responder.
type Server struct {
	// Listen opens a port; nil listens on all addresses of the machine.
	Listen func(ctx context.Context, port int) (net.Listener, error)

	table atomic.Pointer[answer.Table]
}

// Learn takes what redirect ports mean from now on.
func (s *Server) Learn(t answer.Table) { s.table.Store(&t) }

func (s *Server) known() answer.Table {
	if t := s.table.Load(); t != nil {
		return *t
	}
	return nil
}

// closing bounds the time for running answers when the server stops.
const closing = 5 * time.Second

// Run serves until ctx is done. It fails when a port cannot be had.
func (s *Server) Run(ctx context.Context) error {
	listen := s.Listen
	if listen == nil {
		listen = func(ctx context.Context, port int) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf(":%d", port))
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	var opened []net.Listener
	for _, port := range answer.Ports() {
		l, err := listen(ctx, port)
		if err != nil {
			for _, o := range opened {
				_ = o.Close()
			}
			return fmt.Errorf("opening port %d of the responder: %w", port, err)
		}
		opened = append(opened, l)
	}
	for i, port := range answer.Ports() {
		server := &http.Server{
			Handler: Handler(port, s.known),
			// Clients are the load balancers of this cluster; what they pass on is anybody's.
			ReadTimeout:       10 * time.Second,
			ReadHeaderTimeout: 10 * time.Second,
			WriteTimeout:      10 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
		}
		running.Go(func() {
			if err := server.Serve(opened[i]); !errors.Is(err, http.ErrServerClosed) {
				stop(fmt.Errorf("serving port %d of the responder: %w", port, err))
			}
		})
		running.Go(func() {
			<-ctx.Done()
			grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
			defer cancel()
			if server.Shutdown(grace) != nil {
				_ = server.Close()
			}
		})
	}
	running.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return nil
}
