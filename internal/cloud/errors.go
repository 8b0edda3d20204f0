package cloud

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Class says what to do about an error. The set is closed; each class has one policy for requeue, status and events.
type Class string

// The classes.
const (
	// Wait: the load balancer is busy with an earlier change. Not a failure.
	Wait Class = "wait"
	// Stale: the cloud is not as it was observed. Observe and plan again.
	Stale Class = "stale"
	// Retry: throttled, unavailable, or no answer. Whether a write happened is unknown: observe before the next one.
	Retry Class = "retry"
	// UserFault: the request asks for something that cannot be had. It fails until the configuration changes.
	UserFault Class = "user-fault"
	// OperatorFault: credentials, permissions, quota, or a cloud without what is needed. Only an operator can help.
	OperatorFault Class = "operator-fault"
	// Conflict: ownership is in doubt. Nothing may be changed until a person has looked.
	Conflict Class = "conflict"
	// Broken: an object of ours is in ERROR, or stuck.
	Broken Class = "broken"
)

// Reason refines a Class, from a closed set that is fit for metric labels.
type Reason string

// The reasons.
const (
	ReasonImmutable   Reason = "immutable"
	ReasonDuplicate   Reason = "duplicate"
	ReasonInUse       Reason = "in-use"
	ReasonNotFound    Reason = "not-found"
	ReasonThrottled   Reason = "throttled"
	ReasonUnavailable Reason = "unavailable"
	ReasonTimeout     Reason = "timeout"
	ReasonCanceled    Reason = "canceled"
	ReasonMalformed   Reason = "malformed-answer"
	ReasonValidation  Reason = "validation"
	ReasonSelector    Reason = "selector"
	ReasonAddress     Reason = "address"
	ReasonCertificate Reason = "certificate"
	// ReasonProhibited is for TLS settings that the administrator of Octavia does not allow. Facts know them afterwards.
	ReasonProhibited  Reason = "prohibited"
	ReasonAuth        Reason = "auth"
	ReasonPermission  Reason = "permission"
	ReasonQuota       Reason = "quota"
	ReasonUnsupported Reason = "unsupported"
	ReasonOwnership   Reason = "ownership"
	ReasonForeign     Reason = "foreign-children"
	ReasonErrored     Reason = "errored"
	ReasonStuck       Reason = "stuck"
	ReasonPlan        Reason = "plan"
)

// Error is the only error type of this package. Its text is made of our own words and of ids: never of response bodies,
// which may hold what nobody should read, and it is the same for the same cause, so that it can stand in a status.
type Error struct {
	Class  Class
	Reason Reason
	// Op and Resource say what was tried: "create", "load balancer".
	Op       string
	Resource string
	Message  string
	// RequestID is what an operator looks for in the service's log. It changes with each call and is not in Error().
	RequestID string
	// RetryAfter is how long the service asked to be left alone; zero when it did not say.
	RetryAfter time.Duration

	// secrets are the ids of Barbican secrets that a refusal names, ciphers and version what it says is prohibited.
	secrets, ciphers []string
	version          string
	// refused and sure are what Refused returns.
	refused []string
	sure    bool

	// ended is the context's error when that is why the call ended.
	ended error
	// quota is the service and the resource, as Octavia and Neutron key it, whose quota is used up.
	quota quotaOf
}

type quotaOf struct {
	service  service
	resource string
}

func (e *Error) Error() string {
	if e.Op == "" {
		return e.Message
	}
	return fmt.Sprintf("%s %s: %s", e.Op, e.Resource, e.Message)
}

// Unwrap reveals only an ended context.
func (e *Error) Unwrap() error { return e.ended }

// ClassOf returns the class of an error: Retry for one that is not of this package, "" for nil.
func ClassOf(err error) Class {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Class
	default:
		return Retry
	}
}

// ReasonOf returns the reason of an error, "" when it has none.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// MessageOf returns what the cloud said in our words, without what was tried.
func MessageOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return ""
}

// RetryAfterOf returns how long the cloud asked to be left alone.
func RetryAfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// pausedError is the transport's refusal to send anything while a service wants to be left alone.
type pausedError struct {
	wait time.Duration
	// status is the answer that asked for it.
	status int
}

func (e *pausedError) Error() string { return "the service asked for a pause" }

// classify turns what gophercloud returns into an *Error.
func classify(svc service, op, resource string, err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	e := &Error{Op: op, Resource: resource}

	// gophercloud nests the original answer when it had to renew the token on the way.
	var reauth *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &reauth) {
		inner := &Error{}
		if !errors.As(reauth.ErrReauth, &inner) {
			inner = classifyInto(&Error{}, keystone, reauth.ErrReauth)
		}
		e.Class, e.Reason, e.Message, e.RequestID, e.RetryAfter, e.ended =
			inner.Class, inner.Reason, inner.Message, inner.RequestID, inner.RetryAfter, inner.ended
		return e
	}
	var after *gophercloud.ErrErrorAfterReauthentication
	if errors.As(err, &after) {
		err = after.ErrOriginal
	}
	return classifyInto(e, svc, err)
}

func classifyInto(e *Error, svc service, err error) *Error {
	set := func(class Class, reason Reason, format string, args ...any) *Error {
		e.Class, e.Reason, e.Message = class, reason, fmt.Sprintf(format, args...)
		return e
	}
	var paused *pausedError
	var netErr net.Error
	var answer gophercloud.ErrUnexpectedResponseCode
	var noEndpoint *gophercloud.ErrEndpointNotFound
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &answer):
		e.RequestID = requestID(answer.ResponseHeader)
		e.RetryAfter = retryAfter(answer.ResponseHeader, time.Now())
		fault := faultString(answer.Body)
		class, reason, message := meaning(svc, answer.Method, answer.Actual, fault)
		switch reason {
		case ReasonCertificate:
			e.secrets = secretsIn(fault)
		case ReasonProhibited:
			e.ciphers, e.version = prohibitedIn(fault)
		case ReasonQuota:
			if m := quotaPattern.FindStringSubmatch(fault); m != nil {
				e.quota = quotaOf{svc, quotaKey(m[1])}
			}
		}
		return set(class, reason, "%s", message)
	case errors.As(err, &paused):
		e.RetryAfter = paused.wait
		// The same words as for the answer itself, so that what people read does not change with each pass.
		_, _, message := meaning(svc, http.MethodGet, paused.status, "")
		return set(Retry, ReasonThrottled, "%s", message)
	case errors.As(err, &untrusted):
		return set(OperatorFault, ReasonAuth, "the certificate of %s is not trusted or has expired: cacert in clouds.yaml has to name its authority", svc.title())
	case errors.As(err, &noEndpoint):
		return set(OperatorFault, ReasonUnsupported, "the service catalog has no %s endpoint in this region", svc)
	case errors.Is(err, context.Canceled):
		e.ended = context.Canceled
		return set(Retry, ReasonCanceled, "canceled")
	case errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout():
		if errors.Is(err, context.DeadlineExceeded) {
			e.ended = context.DeadlineExceeded
		}
		return set(Retry, ReasonTimeout, "%s did not answer in time", svc.title())
	case isJSON(err):
		return set(Retry, ReasonMalformed, "%s gave an answer that is not the expected JSON", svc.title())
	default:
		return set(Retry, ReasonUnavailable, "%s cannot be reached", svc.title())
	}
}

func isJSON(err error) bool {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &typ)
}

var (
	fieldPattern = regexp.MustCompile(`(?i)(?:field/attribute|unknown attribute(?: for argument)?) '?([a-z0-9_]{1,40})`)
	// References to secrets end in a UUID; all else in a fault string is the cloud's own words.
	secretPattern  = regexp.MustCompile(`/secrets/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`)
	ciphersPattern = regexp.MustCompile(`(?i)prohibited by an administrator: ([A-Z0-9_-]+(?:, [A-Z0-9_-]+)*)`)
	versionPattern = regexp.MustCompile(`(?i)less than the minimum: [^<]{1,80} < (TLSv1(?:\.[1-3])?)`)
	quotaPattern   = regexp.MustCompile(`(?i)quota (?:has been met|exceeded) for resources?:? \[?'?([a-z0-9_ ]{1,40})`)
)

// meaning is what an answer stands for. One status has several meanings in Octavia and Neutron, so the fault string
// decides; it is only recognised, never passed on.
func meaning(svc service, method string, status int, fault string) (Class, Reason, string) {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(strings.ToLower(fault), p) {
				return true
			}
		}
		return false
	}
	name := svc.title()
	switch status {
	case http.StatusBadRequest:
		return badRequest(name, method, fault, has)
	case http.StatusUnauthorized:
		return OperatorFault, ReasonAuth, "Keystone does not accept the credentials in clouds.yaml (401): they are wrong, have expired or were revoked"
	case http.StatusForbidden:
		// Octavia says quota with 403, Neutron with 409.
		if has("quota") {
			return quotaMet(name, fault)
		}
		return OperatorFault, ReasonPermission, fmt.Sprintf("%s forbids this to the controller's credentials (403): they need %s in the project, "+
			"or what this cloud's policies ask for instead", name, svc.roles())
	case http.StatusNotFound:
		if has("is not reachable from subnet") {
			return OperatorFault, ReasonUnsupported, "no router connects the VIP subnet with the floating network"
		}
		return Stale, ReasonNotFound, fmt.Sprintf("%s does not know the object (404)", name)
	case http.StatusConflict:
		return conflict(name, fault, has)
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		if svc == barbican && status == http.StatusRequestEntityTooLarge {
			return UserFault, ReasonCertificate, "the certificate with its chain is larger than Barbican takes (413)"
		}
		return Retry, ReasonThrottled, fmt.Sprintf("%s limits the rate of requests (%d)", name, status)
	case http.StatusNotImplemented:
		return OperatorFault, ReasonUnsupported, fmt.Sprintf("the provider of this cloud's %s does not support the request (501)", name)
	}
	if svc == octavia && status == http.StatusInternalServerError && method == http.MethodPost && has("conflictexception") {
		// Neutron's 409 for the port of the VIP: Octavia does not say more.
		return OperatorFault, ReasonAddress, "the VIP subnet has no free address (500)"
	}
	if status >= 500 {
		// A MariaDB with innodb_snapshot_isolation makes Octavia answer a sporadic 500 "(1020) Record has changed since
		// last read": like every other 5xx it says nothing about the request.
		return Retry, ReasonUnavailable, fmt.Sprintf("%s failed (%d)", name, status)
	}
	return Retry, ReasonMalformed, fmt.Sprintf("%s gave an unexpected answer (%d)", name, status)
}

func secretsIn(fault string) []string {
	var ids []string
	for _, m := range secretPattern.FindAllStringSubmatch(fault, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// prohibitedIn finds the ciphers, or the least version of TLS, that a fault string names.
func prohibitedIn(fault string) (ciphers []string, version string) {
	if m := ciphersPattern.FindStringSubmatch(fault); m != nil {
		ciphers = strings.Split(m[1], ", ")
	}
	if m := versionPattern.FindStringSubmatch(fault); m != nil {
		version = m[1]
	}
	return ciphers, version
}

func badRequest(name, method, fault string, has func(...string) bool) (Class, Reason, string) {
	switch {
	case has("could not retrieve certificate", "could not retrieve certificates"):
		return OperatorFault, ReasonCertificate,
			"Octavia cannot read the certificate in Barbican (400): the credentials need a role that may set the secret's ACL"
	case has("pkcs12", "no cn or dnsname", "ca certificate is invalid"):
		return UserFault, ReasonCertificate, "Octavia does not take the certificate as valid (400)"
	case ciphersPattern.MatchString(fault) || versionPattern.MatchString(fault):
		return UserFault, ReasonProhibited, "the administrator of Octavia prohibits a cipher or a version of TLS (400)"
	case has("terminated_https") && has("not allowed in this deployment"):
		return OperatorFault, ReasonCertificate, "the administrator of Octavia does not allow listeners that terminate TLS (400)"
	case has("provider") && has("not enabled", "not supported", "not found"):
		return OperatorFault, ReasonUnsupported, "Octavia does not have the provider (400)"
	case has("quota"):
		return quotaMet(name, fault)
	case has("subnet", "network", "vip") && has("not found", "does not exist", "could not be found", "can't be found"):
		return OperatorFault, ReasonSelector, "Octavia does not find the network or subnet of the VIP (400)"
	case has("already in use", "is in use", "ip address") && has("vip", "address"):
		return UserFault, ReasonAddress, fmt.Sprintf("%s cannot give this address (400)", name)
	case method == http.MethodDelete:
		return Stale, ReasonInUse, fmt.Sprintf("%s refuses to delete an object that still has children (400)", name)
	}
	if m := fieldPattern.FindStringSubmatch(fault); m != nil {
		return UserFault, ReasonValidation, fmt.Sprintf("%s refuses the value of %s (400)", name, m[1])
	}
	return UserFault, ReasonValidation, fmt.Sprintf("%s refuses the request as invalid (400)", name)
}

func conflict(name, fault string, has func(...string) bool) (Class, Reason, string) {
	switch {
	case has("immutable", "invalid state"):
		return Wait, ReasonImmutable, fmt.Sprintf("%s is busy with an earlier change (409)", name)
	case has("quota"):
		return quotaMet(name, fault)
	case has("no more ip addresses", "exhausted"):
		return OperatorFault, ReasonAddress, "the network has no free address (409)"
	case has("more than", "maximum") && has("rule"):
		return UserFault, ReasonValidation, "Octavia allows at most 50 rules in a policy (409)"
	case has("in use", "is being used", "used by"):
		return Stale, ReasonInUse, fmt.Sprintf("%s says that the object is in use (409)", name)
	case has("already", "duplicate", "another"):
		return Stale, ReasonDuplicate, fmt.Sprintf("%s has such an object already (409)", name)
	}
	return Stale, ReasonDuplicate, fmt.Sprintf("%s reports a conflict with what is there (409)", name)
}

func quotaMet(name, fault string) (Class, Reason, string) {
	what := ""
	if m := quotaPattern.FindStringSubmatch(fault); m != nil {
		what = " for " + plural(strings.ToLower(strings.TrimSpace(m[1])))
	}
	return OperatorFault, ReasonQuota, fmt.Sprintf("the project's %s quota%s is used up", name, what)
}

// quotaKey is a resource without the spaces and underscores that the services put into some names in some places.
func quotaKey(resource string) string {
	return strings.ToLower(strings.NewReplacer("_", "", " ", "").Replace(resource))
}

// plural is a resource as people call it; the services have names of their own for some.
func plural(resource string) string {
	switch quotaKey(resource) {
	case "floatingip":
		return "floating IPs"
	case "l7policy":
		return "L7 policies"
	case "l7rule":
		return "L7 rules"
	case "securitygroup":
		return "security groups"
	}
	return strings.TrimSuffix(resource, "s") + "s"
}

// faultString finds the service's own words in an error body: Octavia has faultstring, Neutron NeutronError.message and
// type, Keystone error.message, a proxy in front of them anything.
func faultString(body []byte) string {
	var doc struct {
		FaultString  string          `json:"faultstring"`
		NeutronError json.RawMessage `json:"NeutronError"`
		Error        struct {
			Message string `json:"message"`
		} `json:"error"`
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	parts := []string{doc.FaultString, doc.Error.Message, doc.Title, doc.Description}
	var neutronError struct{ Type, Message string }
	var text string
	switch {
	case json.Unmarshal(doc.NeutronError, &neutronError) == nil:
		parts = append(parts, neutronError.Type, neutronError.Message)
	case json.Unmarshal(doc.NeutronError, &text) == nil:
		parts = append(parts, text)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

func requestID(h http.Header) string {
	id := h.Get("X-Openstack-Request-Id")
	if len(id) > 64 {
		id = id[:64]
	}
	return id
}

// retryAfter reads seconds or a date; more than an hour is not believed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if v == "" {
		return 0
	}
	d := time.Duration(0)
	if seconds, err := strconv.Atoi(v); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(v); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), time.Hour)
}
