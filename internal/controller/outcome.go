package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// outcome is how a pass ended: what people are told, and when the next pass is.
type outcome struct {
	status.Outcome
	// after is the time to the next pass; zero leaves it to the resync.
	after time.Duration
	// backoff doubles the time to the next pass with each pass that ends so, beginning at after.
	backoff bool
	// least is what the cloud asked for; it does not grow.
	least time.Duration
	// stuck says that only an operator can end what the pass waits for.
	stuck bool
}

// The pauses before the next pass. An operator's or a user's repair outside Kubernetes sends no event, so nothing waits for ever.
const (
	pauseWait     = 2 * time.Second
	pauseRetry    = 5 * time.Second
	pauseOperator = 30 * time.Second
	pauseUser     = 2 * time.Minute
	// An address becomes free without a change of the Gateway, such as when its former one is gone.
	pauseAddress = 20 * time.Second
	pauseBroken  = time.Minute
	pauseMost    = 10 * time.Minute
)

// outcomeOf gives an error of the cloud its policy.
func outcomeOf(err error) outcome {
	o := outcome{Outcome: status.Outcome{Message: upperFirst(err.Error()) + "."}}
	switch cloud.ClassOf(err) {
	case cloud.Wait:
		o.Kind, o.after = status.Pending, pauseWait
		if cloud.ReasonOf(err) == cloud.ReasonStuck {
			// It may serve all the same; what there is to do is an operator's.
			o.Kind, o.after, o.backoff = status.Retry, pauseBroken, true
			o.stuck = true
		}
	case cloud.Stale:
		o.Kind, o.after, o.backoff = status.Pending, pauseWait, true
	case cloud.UserFault:
		o.Kind, o.after, o.backoff = status.UserFault, pauseUser, true
		if cloud.ReasonOf(err) == cloud.ReasonAddress {
			o.Reason, o.after = string(gwv1.GatewayReasonAddressNotUsable), pauseAddress
		}
		if cloud.ReasonOf(err) == cloud.ReasonSelector {
			// The selectors are the platform team's.
			o.Kind = status.OperatorFault
		}
	case cloud.OperatorFault:
		o.Kind, o.after, o.backoff = status.OperatorFault, pauseOperator, true
		if cloud.ReasonOf(err) == cloud.ReasonAddress {
			o.Reason = string(gwv1.GatewayReasonAddressNotAssigned)
		}
	case cloud.Conflict:
		o.Kind, o.after, o.backoff = status.Conflict, pauseBroken, true
	case cloud.Broken:
		o.Kind, o.after, o.backoff = status.Broken, pauseBroken, true
	default:
		o.Kind, o.after, o.backoff = status.Retry, pauseRetry, true
		o.least = cloud.RetryAfterOf(err)
		var known *cloud.Error
		if !errors.As(err, &known) {
			o.Message = "The pass failed; the controller's log has the cause."
		}
	}
	return o
}

// conflict is for what a plan cannot do because of what is not ours.
func conflict(all []plan.Conflict) outcome {
	message := upperFirst(all[0].Reason) + "."
	if len(all) > 1 {
		message += fmt.Sprintf(" There are %d more such conflicts.", len(all)-1)
	}
	if slices.ContainsFunc(all, func(c plan.Conflict) bool { return c.Address }) {
		return outcome{Outcome: status.Outcome{Kind: status.UserFault, Reason: string(gwv1.GatewayReasonAddressNotUsable), Message: message},
			after: pauseAddress, backoff: true}
	}
	return outcome{Outcome: status.Outcome{Kind: status.Conflict, Message: message}, after: pauseBroken, backoff: true}
}

// delay is the time to the next pass after a number of passes in a row that ended without success.
func (o outcome) delay(failures int) time.Duration {
	if !o.backoff {
		return o.after
	}
	return max(min(o.after<<min(failures, 6), max(pauseMost, o.after)), o.least)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
