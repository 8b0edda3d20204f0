package status

// OutcomeKind says how a pass over a Gateway ended. The set is closed.
type OutcomeKind string

// The outcomes.
const (
	// Programmed: the cloud has what is wanted.
	Programmed OutcomeKind = "Programmed"
	// Pending: the cloud is at work, or there is more to do in the next pass.
	Pending OutcomeKind = "Pending"
	// Retry: throttled, unavailable or timed out; it will be tried again by itself.
	Retry OutcomeKind = "Retry"
	// UserFault: the Gateway asks for what cannot be had; its author must change it.
	UserFault OutcomeKind = "UserFault"
	// OperatorFault: credentials, quota, permissions, or a cloud that lacks something; its operator must act.
	OperatorFault OutcomeKind = "OperatorFault"
	// Conflict: something that is not ours stands in the way.
	Conflict OutcomeKind = "Conflict"
	// Broken: the load balancer is in ERROR.
	Broken OutcomeKind = "Broken"
)

// Outcome is how a pass ended, for people.
type Outcome struct {
	Kind OutcomeKind
	// Reason overrides the reason of Programmed=False that Kind stands for, such as NoResources for a quota or
	// AddressNotUsable.
	Reason string
	// Message is what happened and what to do, in a sentence without anything that changes from pass to pass.
	Message string
	// Addresses overrides the addresses that follow from the observed tree.
	Addresses []string
}
