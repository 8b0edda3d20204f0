package cloud

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// floatingIP creates, moves or deletes the public address of the VIP port. Each looks first, with reads.
func (e execution) floatingIP(ctx context.Context) error {
	f := e.step.FloatingIP
	if e.step.Verb == plan.Delete {
		return e.deleteFloatingIP(ctx)
	}
	if f == nil {
		return planError("a step for a floating IP has no floating IP")
	}
	// The port is known only when the load balancer exists, which may be after the plan was made; a step without a
	// parent detaches.
	portID := ""
	if e.step.Parent != (plan.Ref{}) {
		if portID = e.have.VIP.PortID; portID == "" {
			return &Error{Class: Wait, Reason: ReasonImmutable, Op: string(e.step.Verb), Resource: "floating IP",
				Message: "the load balancer has no VIP port yet"}
		}
		if err := e.vipPort(ctx, e.have.VIP); err != nil {
			return err
		}
	}
	if e.step.Verb == plan.Create {
		return e.createFloatingIP(ctx, f, portID)
	}
	there, err := e.findFloatingIP(ctx, f)
	if err != nil {
		return err
	}
	if portID != "" && there.PortID != "" && there.PortID != portID && (e.have.Old == nil || there.PortID != e.have.Old.VIP.PortID) {
		return &Error{Class: UserFault, Reason: ReasonAddress, Op: "attach", Resource: "floating IP " + there.Address,
			Message: "it is in use by another port: " + there.PortID}
	}
	return e.putOnPort(ctx, there, portID)
}

// createFloatingIP allocates with port and ownership mark in the same POST, unless there is one of ours already.
func (e execution) createFloatingIP(ctx context.Context, f *lb.FloatingIP, portID string) error {
	now := lb.Tree{Owner: e.have.Owner, VIP: lb.VIP{PortID: portID}}
	if err := e.observeAddresses(ctx, &now, &lb.Tree{FloatingIP: f}); err != nil {
		return err
	}
	if f.Address != "" {
		if there := cmp.Or(now.Asked, now.FloatingIP); there != nil && there.Address == f.Address {
			return stale("floating IP "+f.Address, "it exists by now")
		}
		return e.allocateFloatingIP(ctx, f, portID)
	}
	switch there := now.FloatingIP; {
	case there == nil:
	case there.Supplied:
		return &Error{Class: Conflict, Reason: ReasonOwnership, Op: "create", Resource: "floating IP",
			Message: "the VIP port already has the floating IP " + there.Address + ", which this controller did not allocate"}
	case there.PortID == portID:
		e.step.FloatingIP = there
		return nil
	case there.PortID == "":
		return e.putOnPort(ctx, wireFloatingIP{ID: there.ID, NetworkID: there.NetworkID, Address: there.Address,
			Description: there.Description}, portID)
	}
	return e.allocateFloatingIP(ctx, f, portID)
}

func (e execution) allocateFloatingIP(ctx context.Context, f *lb.FloatingIP, portID string) error {
	body := attributes{
		"floating_network_id": f.NetworkID,
		"port_id":             or(portID),
		"description":         e.have.Owner.Description(),
		"floating_ip_address": or(f.Address),
	}.forCreate()
	var out struct{ FloatingIP wireFloatingIP }
	err := e.do(ctx, call{service: neutron, method: http.MethodPost, path: "/floatingips",
		body: attributes{"floatingip": body}, out: &out, op: "create", what: "floating IP"})
	if err != nil {
		return ofAddress(err, f.Address)
	}
	e.step.FloatingIP = out.FloatingIP.model(e.have.Owner)
	e.step.Ref.ID = out.FloatingIP.ID
	return nil
}

// ofAddress says of an error what it means when a certain address was asked for.
func ofAddress(err error, address string) error {
	var e *Error
	if address == "" || !errors.As(err, &e) {
		return err
	}
	message := ""
	switch e.Reason {
	case ReasonPermission:
		message = "the project has no floating IP with this address, and the controller's credentials may not choose the address of a new one (403): " +
			"ask the platform team to allocate it for the project"
	case ReasonDuplicate, ReasonInUse:
		message = "the address is in use (409): ask for another one"
	case ReasonValidation, ReasonSelector:
		message = "it is no address of the floating network (400): ask for another one"
	default:
		return err
	}
	return &Error{Class: UserFault, Reason: ReasonAddress, Op: e.Op, Resource: "floating IP " + address, Message: message, RequestID: e.RequestID}
}

// findFloatingIP resolves the floating IP of a step. One that the user supplied is known by its address.
func (e execution) findFloatingIP(ctx context.Context, f *lb.FloatingIP) (wireFloatingIP, error) {
	query := url.Values{}
	switch id := cmp.Or(e.step.Ref.ID, f.ID); {
	case id != "":
		query.Set("id", id)
	case f.Address != "":
		query.Set("floating_ip_address", f.Address)
	default:
		return wireFloatingIP{}, planError("a step for a floating IP names none")
	}
	found, err := e.floatingIPs(ctx, query)
	if err != nil {
		return wireFloatingIP{}, err
	}
	if len(found) != 1 {
		return wireFloatingIP{}, &Error{Class: UserFault, Reason: ReasonAddress, Op: "find", Resource: "floating IP " + cmp.Or(f.Address, f.ID),
			Message: "the project has no such floating IP"}
	}
	return found[0], nil
}

// putOnPort attaches; an empty port detaches.
func (e execution) putOnPort(ctx context.Context, f wireFloatingIP, portID string) error {
	err := e.do(ctx, call{service: neutron, method: http.MethodPut, path: "/floatingips/" + element(f.ID),
		body: attributes{"floatingip": attributes{"port_id": or(portID)}}, op: "update", what: "floating IP " + cmp.Or(f.Address, f.ID)})
	if refused := (*Error)(nil); errors.As(err, &refused) && portID != "" && refused.Class == Stale && refused.Reason != ReasonNotFound {
		// Neutron gives a fixed address one floating IP. Ours are taken off before, so this one is somebody else's.
		return &Error{Class: Conflict, Reason: ReasonForeign, Op: refused.Op, Resource: refused.Resource, RequestID: refused.RequestID,
			Message: "port " + portID + " of the VIP has another floating IP, which is not this Gateway's (409): take that one off the port"}
	}
	if err != nil {
		return err
	}
	f.PortID = portID
	e.step.FloatingIP, e.step.Ref.ID = f.model(e.have.Owner), f.ID
	return nil
}

// deleteFloatingIP reads the address again first: one that has lost our mark since belongs to somebody else.
func (e execution) deleteFloatingIP(ctx context.Context) error {
	id := e.step.Ref.ID
	if id == "" && e.have.FloatingIP != nil {
		id = e.have.FloatingIP.ID
	}
	found, err := e.floatingIPs(ctx, url.Values{"id": {id}})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	if found[0].ID != id || !e.have.Owner.OwnsDescription(found[0].Description) {
		return &Error{Class: Conflict, Reason: ReasonOwnership, Op: "delete", Resource: "floating IP " + found[0].Address,
			Message: "it does not carry the mark of this Gateway"}
	}
	return gone(e.do(ctx, call{service: neutron, method: http.MethodDelete, path: "/floatingips/" + element(id),
		op: "delete", what: "floating IP " + found[0].Address}))
}
