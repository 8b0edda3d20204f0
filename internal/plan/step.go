package plan

import "github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"

// Verb is what a step does to its object.
type Verb string

// The verbs. Each step is exactly one API call.
const (
	Create Verb = "create"
	Update Verb = "update"
	// Delete of a load balancer cascades. Of a listener or a policy it takes what is below with it, as Octavia does. A
	// supplied floating IP is never deleted: it is an Update that detaches.
	Delete Verb = "delete"
)

// Ref points at an object: by ID when the cloud has given one, else by the Key under which an earlier step of the same
// plan creates it.
type Ref struct {
	ID  string `json:"id,omitempty"`
	Key string `json:"key"`
}

// Step is one API call as data. For Create and Update the field of its Kind holds the object as it shall be after the
// call, without what is below it (but for a load balancer, which is created with everything); pools and listeners inside
// it are named by key.
type Step struct {
	Verb Verb    `json:"verb"`
	Kind lb.Kind `json:"kind"`
	// Ref is the object. For KindMembers it is the pool. The Key of a rule or a monitor, which have none, is for people.
	Ref Ref `json:"ref"`
	// Parent is the listener of a policy, the policy of a rule, the pool of a monitor, and the load balancer to whose VIP
	// port a floating IP is attached (none when it is detached, or only allocated). Empty otherwise.
	Parent Ref `json:"parent,omitzero"`
	// Listener is the listener above a rule's policy; empty for all other kinds.
	Listener Ref `json:"listenerRef,omitzero"`
	// Fields names what an Update changes, in Octavia's field names, sorted; only these are sent.
	Fields []string `json:"fields,omitempty"`
	// Position is the wanted 1-based position of a policy for Create, and for Update when Fields has "position".
	Position int `json:"position,omitempty"`
	// Reason says in a few words why, for people.
	Reason string `json:"reason"`

	// Tree for KindLoadBalancer: on Create the fully-populated load balancer.
	Tree *lb.Tree `json:"tree,omitempty"`
	// ListenerTo for KindListener; on Delete it is the listener as it was, for its port.
	ListenerTo *lb.Listener `json:"listener,omitempty"`
	Pool       *lb.Pool     `json:"pool,omitempty"`
	// Members for KindMembers: the whole set, which one call puts in place.
	Members    []lb.Member    `json:"members,omitempty"`
	Monitor    *lb.Monitor    `json:"monitor,omitempty"`
	Policy     *lb.Policy     `json:"policy,omitempty"`
	Rule       *lb.Rule       `json:"rule,omitempty"`
	FloatingIP *lb.FloatingIP `json:"floatingIP,omitempty"`
	Secret     *lb.Secret     `json:"secret,omitempty"`
}

// Locks says whether the call takes Octavia's lock on the load balancer, after which it is PENDING.
func (s Step) Locks() bool { return s.Kind != lb.KindFloatingIP && s.Kind != lb.KindSecret }
