package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

func octaviaFault(s string) []byte {
	b, _ := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": s, "debuginfo": nil})
	return b
}

func neutronFault(kind, s string) []byte {
	b, _ := json.Marshal(map[string]any{"NeutronError": map[string]string{"type": kind, "message": s, "detail": ""}})
	return b
}

func TestClassify_readsTheFaultString(t *testing.T) {
	t.Parallel()
	const id = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
	for _, c := range []struct {
		name   string
		svc    service
		method string
		status int
		body   []byte
		class  Class
		reason Reason
		says   string
	}{
		{"prohibited ciphers", octavia, "POST", 400, octaviaFault("Validation failure: The following ciphers have been prohibited by an administrator: AES128-SHA, AES256-SHA"), UserFault, ReasonProhibited, "prohibits a cipher"},
		{"prohibited versions", octavia, "PUT", 400, octaviaFault("Validation failure: Requested TLS versions are less than the minimum: TLSv1.2 < TLSv1.3"), UserFault, ReasonProhibited, "version of TLS"},
		{"TLS is switched off", octavia, "POST", 400, octaviaFault("The selected protocol is not allowed in this deployment: TERMINATED_HTTPS"), OperatorFault, ReasonCertificate, "terminate TLS"},
		{"busy", octavia, "PUT", 409, octaviaFault("Load Balancer " + id + " is immutable and cannot be updated."), Wait, ReasonImmutable, "busy"},
		{"busy delete", octavia, "DELETE", 409, octaviaFault("Invalid state PENDING_UPDATE of loadbalancer resource " + id), Wait, ReasonImmutable, "busy"},
		{"duplicate listener", octavia, "POST", 409, octaviaFault("Another Listener on this Load Balancer is already using protocol TCP and protocol_port 80"), Stale, ReasonDuplicate, "already"},
		{"duplicate monitor", octavia, "POST", 409, octaviaFault("This pool already has a health monitor"), Stale, ReasonDuplicate, "already"},
		{"pool in use", octavia, "DELETE", 409, octaviaFault("Pool " + id + " is in use by L7 policy " + id + "."), Stale, ReasonInUse, "in use"},
		{"too many rules", octavia, "POST", 409, octaviaFault("Too many rules have been defined for L7 policy " + id + ". The maximum is 50"), UserFault, ReasonValidation, "50 rules"},
		{"octavia quota", octavia, "POST", 403, octaviaFault("Quota has been met for resources: Load Balancer"), OperatorFault, ReasonQuota, "quota for load balancer"},
		{"octavia policy", octavia, "POST", 403, octaviaFault("Policy does not allow this request to be performed."), OperatorFault, ReasonPermission, "load-balancer_member"},
		{"neutron quota", neutron, "POST", 409, neutronFault("OverQuota", "Quota exceeded for resources: ['floatingip']."), OperatorFault, ReasonQuota, "quota for floating IPs"},
		{"no address", neutron, "POST", 409, neutronFault("IpAddressGenerationFailure", "No more IP addresses available on network x."), OperatorFault, ReasonAddress, "no free address"},
		{"no router", neutron, "POST", 404, neutronFault("ExternalGatewayForFloatingIPNotFound", "External network x is not reachable from subnet y. Therefore, cannot associate Port z with a Floating IP."), OperatorFault, ReasonUnsupported, "no router"},
		{"not found", octavia, "PUT", 404, octaviaFault("L7Policy " + id + " not found."), Stale, ReasonNotFound, "404"},
		{"not found as text", neutron, "GET", 404, []byte(`{"NeutronError": "gone"}`), Stale, ReasonNotFound, "404"},
		{"validation", octavia, "POST", 400, octaviaFault("Invalid input for field/attribute redirect_url. Value: 'x'. Invalid input"), UserFault, ReasonValidation, "refuses the value of redirect_url"},
		{"unknown attribute", octavia, "PUT", 400, octaviaFault("Invalid input for field/attribute listener. Unknown attribute 'foo'"), UserFault, ReasonValidation, "400"},
		{"other validation", octavia, "POST", 400, octaviaFault("Validation failure: secret-value-of-a-tenant"), UserFault, ReasonValidation, "invalid (400)"},
		{"certificate", octavia, "POST", 400, octaviaFault("Could not retrieve certificate: ['http://barbican/v1/secrets/x']"), OperatorFault, ReasonCertificate, "Barbican"},
		{"provider", octavia, "POST", 400, octaviaFault("Provider 'octavia' is not enabled."), OperatorFault, ReasonUnsupported, "provider"},
		{"subnet", octavia, "POST", 400, octaviaFault("Subnet " + id + " not found."), OperatorFault, ReasonSelector, "VIP"},
		{"children", octavia, "DELETE", 400, octaviaFault("Cannot delete Load Balancer " + id + " - it has children"), Stale, ReasonInUse, "children"},
		{"token", octavia, "GET", 401, []byte(`{"error": {"message": "The request you have made requires authentication."}}`), OperatorFault, ReasonAuth, "clouds.yaml"},
		{"snapshot isolation", octavia, "PUT", 500, octaviaFault(`(pymysql.err.OperationalError) (1020, "Record has changed since last read in table 'load_balancer'")`), Retry, ReasonUnavailable, "500"},
		{"project busy", octavia, "POST", 503, octaviaFault("Project busy.  Unable to lock the project.  Please try again."), Retry, ReasonUnavailable, "503"},
		{"proxy", octavia, "POST", 504, []byte("<html>gateway timeout</html>"), Retry, ReasonUnavailable, "504"},
		{"provider option", octavia, "POST", 501, octaviaFault("Provider 'ovn' does not support a requested option"), OperatorFault, ReasonUnsupported, "501"},
		{"throttled", octavia, "GET", 429, nil, Retry, ReasonThrottled, "429"},
		{"redirect", octavia, "GET", 302, nil, Retry, ReasonMalformed, "302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			h.Set("X-Openstack-Request-Id", "req-1")
			h.Set("Retry-After", "3")
			err := classify(c.svc, "create", "thing", gophercloud.ErrUnexpectedResponseCode{
				Method: c.method, Actual: c.status, Body: c.body, ResponseHeader: h})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("not an *Error: %v", err)
			}
			if e.Class != c.class || e.Reason != c.reason || !strings.Contains(e.Message, c.says) {
				t.Errorf("got %s/%s %q, want %s/%s ...%q", e.Class, e.Reason, e.Message, c.class, c.reason, c.says)
			}
			if e.RequestID != "req-1" || e.RetryAfter != 3*time.Second {
				t.Errorf("request id %q, retry after %s", e.RequestID, e.RetryAfter)
			}
			if strings.Contains(err.Error(), "secret-value") || strings.Contains(err.Error(), "req-1") {
				t.Errorf("the text holds what may not be in a status: %v", err)
			}
		})
	}
}

func TestClassify_withoutAnswer(t *testing.T) {
	t.Parallel()
	unauthorized := gophercloud.ErrUnexpectedResponseCode{Method: "POST", Actual: 401}
	for _, c := range []struct {
		name   string
		err    error
		class  Class
		reason Reason
	}{
		{"timeout", &url.Error{Op: "Post", URL: "http://octavia", Err: context.DeadlineExceeded}, Retry, ReasonTimeout},
		{"canceled", &url.Error{Op: "Post", URL: "http://octavia", Err: context.Canceled}, Retry, ReasonCanceled},
		{"cut", &url.Error{Op: "Post", URL: "http://octavia", Err: errors.New("EOF")}, Retry, ReasonUnavailable},
		{"not JSON", &json.SyntaxError{}, Retry, ReasonMalformed},
		{"paused", &url.Error{Op: "Get", URL: "http://octavia", Err: &pausedError{2 * time.Second, 429}}, Retry, ReasonThrottled},
		{"no endpoint", &gophercloud.ErrEndpointNotFound{}, OperatorFault, ReasonUnsupported},
		{"credentials refused", &gophercloud.ErrUnableToReauthenticate{ErrOriginal: unauthorized, ErrReauth: unauthorized}, OperatorFault, ReasonAuth},
		{"Keystone down", &gophercloud.ErrUnableToReauthenticate{ErrOriginal: unauthorized,
			ErrReauth: gophercloud.ErrUnexpectedResponseCode{Method: "POST", Actual: 503}}, Retry, ReasonUnavailable},
		{"after renewal", &gophercloud.ErrErrorAfterReauthentication{ErrOriginal: gophercloud.ErrUnexpectedResponseCode{
			Method: "PUT", Actual: 409, Body: octaviaFault("is immutable")}}, Wait, ReasonImmutable},
		{"wrapped", fmt.Errorf("more: %w", &Error{Class: Broken, Reason: ReasonStuck}), Broken, ReasonStuck},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := classify(octavia, "create", "thing", c.err)
			if ClassOf(err) != c.class || ReasonOf(err) != c.reason {
				t.Errorf("got %s/%s: %v", ClassOf(err), ReasonOf(err), err)
			}
		})
	}
	if !errors.Is(classify(octavia, "", "", context.Canceled), context.Canceled) {
		t.Error("a canceled context cannot be recognised")
	}
	if ClassOf(nil) != "" || ClassOf(errors.New("x")) != Retry || classify(octavia, "", "", nil) != nil {
		t.Error("ClassOf of nil and of strangers")
	}
}

func TestRetryAfter_readsSecondsAndDates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "soon": 0, "999999": time.Hour,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second,
		"Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
