package compile

import (
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// persistenceOf reads session persistence (a field of the experimental channel); false when Octavia has nothing that is the same. HAProxy's
// cookie has a fixed name and lasts as long as the browser's session.
func persistenceOf(p *gwv1.SessionPersistence) (lb.Persistence, bool) {
	if p == nil {
		return "", true
	}
	cookie := p.Type == nil || *p.Type == gwv1.CookieBasedSessionPersistence
	session := p.CookieConfig == nil || p.CookieConfig.LifetimeType == nil || *p.CookieConfig.LifetimeType == gwv1.SessionCookieLifetimeType
	if !cookie || !session || p.SessionName != nil || p.AbsoluteTimeout != nil {
		return "", false
	}
	return lb.HTTPCookie, true
}
