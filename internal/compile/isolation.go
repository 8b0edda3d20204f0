package compile

// isolated leaves of the claims of a route on l those hosts that no more specific listener of the port takes. Each host belongs to the
// most specific listener alone, whether a route there wants it or not.
func (f *frontend) isolated(l *listener, wanted []claim) []claim {
	var left []claim
	for _, c := range wanted {
		if !f.takenFrom(l, c.host) {
			left = append(left, c)
		}
	}
	return left
}

// takenFrom says whether a more specific listener than l has the whole of host.
func (f *frontend) takenFrom(l *listener, host hostname) bool {
	for _, o := range f.listeners {
		if o.hostname != l.hostname && l.hostname.covers(o.hostname) && o.hostname.covers(host) {
			return true
		}
	}
	return false
}

// barriers stop requests at the end of each listener that has a less specific one below it: without them they would fall through to
// the routes of that one. They do not depend on routes, so that a new route never has to wait for one.
func (f *frontend) barriers(noRoute *pool) []*entry {
	var list []*entry
	for _, l := range f.listeners {
		for _, o := range f.listeners {
			if o.hostname != l.hostname && o.hostname.covers(l.hostname) {
				list = append(list, &entry{match: match{hosts: newHosts(l.hostname)}, listener: l, pool: noRoute})
				break
			}
		}
	}
	return list
}
