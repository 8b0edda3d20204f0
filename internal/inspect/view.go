package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/cloud"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/status"
)

// view is one Gateway from all sides, as the controller would see it in a pass that begins now.
type view struct {
	key      types.NamespacedName
	snapshot compile.Snapshot
	compiled compile.Result
	// want is the wanted tree; it is empty when the Gateway is to have nothing, and nil when it keeps what it has: see kept.
	want *lb.Tree
	// kept says why what the Gateway has stays as it is, "" when it does not.
	kept string
	// have is what the cloud has; nil when the cloud was not asked or could not be read: see unseen.
	have *lb.Tree
	// unseen is why the cloud could not be read, wholly or in part.
	unseen error
	todo   plan.Plan
	// assumed says that want was compiled without asking the cloud: its ids of subnets are made up.
	assumed bool
}

// busy says whether Octavia is at work on the load balancer, and so what is below it could not be read.
func (v *view) busy() bool { return v.have != nil && v.have.ProvisioningStatus.Pending() }

// deleting says whether the Gateway is on its way out, or out of our hands.
func (v *view) deleting(r *kube.Reader) bool {
	return !v.snapshot.Gateway.DeletionTimestamp.IsZero() || !r.Selects(v.snapshot.Class)
}

// look reads and compiles a Gateway, and what the cloud has for it when there is a cloud. The error is Kubernetes'; that of the cloud
// stands in the view.
func look(ctx context.Context, r *kube.Reader, c *cloud.Client, key types.NamespacedName, now time.Time) (*view, error) {
	snapshot, parameters, err := snapshotOf(ctx, r, key)
	if err != nil {
		return nil, err
	}
	v := &view{key: key, snapshot: snapshot}
	v.snapshot.Now = now
	if !r.Ours(snapshot) {
		return v, nil
	}
	switch {
	case v.deleting(r):
		v.want = &lb.Tree{}
	case parameters != nil:
		v.kept = "its GatewayClass has no usable parameters: " + parameters.Message
	default:
		v.compile(ctx, c)
	}
	if c != nil && v.unseen == nil {
		v.observe(ctx, c)
	}
	return v, nil
}

// snapshotOf reads a Gateway; parameters is what is wrong with those of its class.
func snapshotOf(ctx context.Context, r *kube.Reader, key types.NamespacedName) (s compile.Snapshot, parameters *kube.ParametersError, err error) {
	s, err = r.Snapshot(ctx, key)
	if errors.As(err, &parameters) {
		// The snapshot is complete but for the configuration.
		return s, parameters, nil
	}
	return s, nil, err
}

// observe reads what the cloud has, and plans the rest.
func (v *view) observe(ctx context.Context, c *cloud.Client) {
	have, err := c.ObserveFor(ctx, controller.OwnerOf(v.snapshot), v.want, nil)
	v.unseen = err
	if err != nil && !cloud.OfCertificates(err) && cloud.ClassOf(err) != cloud.Broken {
		return
	}
	v.have = &have
	if v.want == nil || v.busy() {
		return
	}
	want := v.want
	if cloud.OfCertificates(err) && !want.Empty() {
		want = plan.WithoutCertificates(want, &have)
	}
	v.todo = plan.New(want, &have)
}

// compile makes the wanted tree, with the facts of the cloud or with assumed ones.
func (v *view) compile(ctx context.Context, c *cloud.Client) {
	v.snapshot.Facts, v.assumed = assumedFacts(v.snapshot.Config), true
	if c != nil {
		facts, err := c.Facts(ctx, controller.FactsRequest(v.snapshot.Config))
		if err == nil {
			v.snapshot.Facts, v.assumed = facts, false
		}
		v.unseen = err
	}
	v.compiled = compile.Gateway(v.snapshot)
	if v.compiled.Hold {
		v.kept = "it is refused as a whole: " + v.refusal()
		return
	}
	v.want = &v.compiled.Tree
}

// refusal is what the Gateway's own Accepted condition says.
func (v *view) refusal() string {
	for _, verdict := range v.compiled.Verdicts {
		if verdict.Object.Kind != status.KindGateway || verdict.Listener != "" {
			continue
		}
		for _, c := range verdict.Conditions {
			if c.Type == string(gwv1.GatewayConditionAccepted) {
				return c.Message
			}
		}
	}
	return "see its conditions"
}

// assumedFacts stand in for a cloud that is not asked: everything that the class names exists.
func assumedFacts(config *v1alpha1.OpenStackGatewayClassConfig) lb.Facts {
	facts := lb.Facts{ProjectID: "<project>", KeyManager: true}
	if config == nil {
		return facts
	}
	facts.VIPSubnet = lb.Subnet{ID: assumed(config.Spec.VIPSubnet), NetworkID: assumed(config.Spec.VIPNetwork)}
	facts.MemberSubnetID, facts.FloatingNetworkID = assumed(config.Spec.MemberSubnet), assumed(config.Spec.FloatingNetwork)
	for i := range config.Spec.AdditionalVIPSubnets {
		facts.AdditionalVIPSubnets = append(facts.AdditionalVIPSubnets, lb.Subnet{ID: assumed(&config.Spec.AdditionalVIPSubnets[i])})
	}
	for i := range config.Spec.VIPSecurityGroups {
		facts.VIPSecurityGroupIDs = append(facts.VIPSecurityGroupIDs, assumed(&config.Spec.VIPSecurityGroups[i]))
	}
	return facts
}

// assumed stands for the id of what a selector selects.
func assumed(s *v1alpha1.Selector) string {
	switch {
	case s == nil:
		return ""
	case s.ID != "":
		return s.ID
	case s.Name != "":
		return "<" + s.Name + ">"
	case len(s.Tags) > 0:
		return "<tags " + strings.Join(s.Tags, ",") + ">"
	}
	return "<the only one>"
}

// tree is what to show of the load balancer: what there is, or what is wanted when there is nothing or nobody knows.
func (v *view) tree() (t *lb.Tree, wanted bool) {
	if v.have != nil && !v.have.Empty() && !v.busy() {
		return v.have, false
	}
	if v.want != nil && !v.want.Empty() {
		return v.want, true
	}
	return v.have, false
}

// published is what the Gateway's status says: a word and the addresses.
func published(gw *gwv1.Gateway) (word, message string, addresses []string) {
	for _, a := range gw.Status.Addresses {
		addresses = append(addresses, a.Value)
	}
	c := meta.FindStatusCondition(gw.Status.Conditions, string(gwv1.GatewayConditionProgrammed))
	switch {
	case c == nil:
		return "not looked at yet", "", addresses
	case c.Status == "True":
		return "Programmed", c.Message, addresses
	}
	return fmt.Sprintf("Programmed=%s (%s)", c.Status, c.Reason), c.Message, addresses
}
