package route

// Request is what HAProxy sees of a request. Those that it refuses by itself with 400 are not modelled: a target that is none or has
// a "#" or a byte that must be encoded, an absolute target with another host than the Host header, a host with a bad port.
type Request struct {
	// Port is where it arrives.
	Port int
	// Host is the raw Host header, with its port if it has one.
	Host string
	// Path is the raw request target: the path with the query, nothing decoded; or an absolute URL, or "*".
	Path string
	// Header is the rest of the headers; names in any case.
	Header map[string][]string
}

// Kind is what becomes of a request.
type Kind string

// The kinds of answers.
const (
	// Pool forwards to the pool of the answer.
	Pool Kind = "pool"
	// Redirect answers with Code and Location.
	Redirect Kind = "redirect"
	// Rejected answers 403.
	Rejected Kind = "rejected"
	// NoPool answers 503: no policy matches and there is no enabled default pool.
	NoPool Kind = "no pool"
	// NoListener means that nothing listens on the port.
	NoListener Kind = "no listener"
)

// Answer says what becomes of a request.
type Answer struct {
	Kind Kind
	// Listener is the key of the listener that took the request.
	Listener string
	// Policy is the key of the policy that decided; "" when none did.
	Policy string
	// Pool is the key of the pool, for Pool.
	Pool string
	// Location and Code are the answer, for Redirect; Code is also set when HAProxy itself answers.
	Location string
	Code     int
}
