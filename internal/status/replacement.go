package status

import (
	"fmt"

	"github.com/gateway-api-openstack/gateway-api-openstack/api"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Replacement says how a load balancer that keeps something is replaced, or why it is not though that is asked for; "" for nothing. kept is how
// much it keeps.
func Replacement(want, have *lb.Tree, kept int) string {
	switch asked := want.Replaces; {
	case have.Empty() || want.Empty():
		return ""
	case asked == have.ID && lb.SharedVIP(want, have) != "":
		return fmt.Sprintf("It cannot be replaced while the Gateway asks for the VIP %s: two load balancers cannot have it at the same time. "+
			"Take it out of spec.addresses, or ask for another one.", lb.SharedVIP(want, have))
	case asked == have.ID:
		return ""
	case asked != "" && asked != have.Replaces:
		return fmt.Sprintf("Its id is %s, and the annotation %s asks to replace %q: nothing is replaced.", have.ID, api.ReplaceAnnotation, asked)
	case kept > 0:
		return fmt.Sprintf("To have it replaced, annotate the Gateway with %s=%s.", api.ReplaceAnnotation, have.ID)
	}
	return ""
}

// The stages of a replacement, for people. made and old are load balancers.

// ReplacementBegins says that another load balancer is made.
func ReplacementBegins(old string) string {
	return fmt.Sprintf("Load balancer %s is being replaced: another one is made, and the old one serves until that one is complete.", old)
}

// ReplacementBuilds says that the new load balancer is not complete.
func ReplacementBuilds(made, old string) string {
	return fmt.Sprintf("Load balancer %s is being replaced by %s, which is not complete yet.", old, made)
}

// ReplacementWaits says that the new load balancer does not reach what the old one does.
func ReplacementWaits(made, old, pool string) string {
	return fmt.Sprintf("Load balancer %s is being replaced by %s, which is complete but does not reach a member of pool %q, which the old one reaches: "+
		"routes or security groups for its subnet may be missing. The old one serves until then; to give up, remove the annotation %s.",
		old, made, pool, api.ReplaceAnnotation)
}

// ReplacementBroken says that the new load balancer failed.
func ReplacementBroken(why string) string {
	return fmt.Sprintf("The load balancer that shall replace the old one is of no use: %s. The old one serves; to give up, remove the annotation %s.",
		why, api.ReplaceAnnotation)
}

// ReplacementEnds says that only the old load balancer is left to delete.
func ReplacementEnds(made, old string) string {
	return fmt.Sprintf("Load balancer %s has taken the place of %s, which is being deleted.", made, old)
}

// ReplacementGivenUp says that the new load balancer goes.
func ReplacementGivenUp(made, old string) string {
	return fmt.Sprintf("Load balancer %s shall not be replaced any more: %s, which was made for that, is being deleted.", old, made)
}
