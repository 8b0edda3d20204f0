package cloud

import (
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
)

// A process that was frozen for an hour in the middle of a wait must not take that for Octavia's pace.
func TestPace_looksAfterAMinuteAtTheLatest(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	update, create := plan.Step{Verb: plan.Update, Kind: lb.KindRule}, plan.Step{Verb: plan.Create, Kind: lb.KindLoadBalancer}
	for _, c := range []struct{ took, update, create time.Duration }{
		{4 * time.Second, 3 * time.Second, 2 * time.Second},
		{0, firstLook, firstLook},
		{time.Hour, time.Minute, time.Minute},
	} {
		p = pace{}
		p.note("a", update, c.took)
		p.begin("a", now)
		p.end("a", now.Add(c.took))
		if got := p.first("a", update); got != c.update {
			t.Errorf("update after %s: first look after %s", c.took, got)
		}
		if got := p.first("b", create); got != c.create {
			t.Errorf("create after %s: first look after %s", c.took, got)
		}
	}
}
