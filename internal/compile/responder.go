package compile

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/answer"
)

// responder is the fallback responder of the class: backends that answer 404, 500, 503, or with one redirect each.
type responder struct {
	// on says that the class has one, though its Service may have no endpoints or not exist.
	on bool
	// backends are those of the ports that the Service has.
	backends map[int]*backend
	// redirects is what the ports for redirects mean; more may get a meaning when open.
	redirects answer.Table
	open      bool
	service   name
}

func newResponder(in *input, all *backends) *responder {
	if in.Config == nil || in.Config.Spec.Responder == nil {
		return &responder{}
	}
	ref := in.Config.Spec.Responder.Service
	r := &responder{on: true, backends: map[int]*backend{}, service: name{ref.Namespace, ref.Name}}
	service := in.services[r.service]
	if service == nil {
		return r
	}
	// What another controller has given a meaning it may take away again.
	if table, writer := answer.ParseTable(service.Annotations[answer.Annotation]); writer == "" || writer == in.Controller {
		r.redirects, r.open = table, !in.RedirectsFixed
	}
	known := answer.Ports()
	for _, p := range service.Spec.Ports {
		target := targetOf(p)
		if !slices.Contains(known, target) || r.backends[target] != nil {
			continue
		}
		if found, problem := all.find(r.service, p.Port, nil); problem == nil {
			r.backends[target] = &backend{service: r.service, port: p.Port, endpoints: found.endpoints, answers: target}
		}
	}
	return r
}

// targetOf is the port of the Pods.
func targetOf(p corev1.ServicePort) int {
	if n := p.TargetPort.IntValue(); n != 0 {
		return n
	}
	return int(p.Port)
}

// backend is the one that answers on a port of the Pods. It has no endpoints when the Service does not have the port.
func (r *responder) backend(port int) *backend {
	if b := r.backends[port]; b != nil {
		return b
	}
	return &backend{service: r.service, answers: port}
}

// shares is everything for one port of the responder; nothing when there is no responder, which HAProxy answers with 503.
func (r *responder) shares(port int) []share {
	if !r.on {
		return nil
	}
	return []share{{backend: r.backend(port), weight: 1}}
}

// always finds the port that gives the redirect whatever other redirects there are.
func (r *responder) always(wanted answer.Redirect) (*backend, bool) {
	port, ok := answer.Fixed(wanted)
	if !ok || !r.on {
		return nil, false
	}
	return r.backends[port], r.backends[port] != nil
}

// redirect finds or assigns the port that gives the redirect.
func (r *responder) redirect(wanted answer.Redirect) (*backend, error) {
	if b, ok := r.always(wanted); ok {
		return b, nil
	}
	port, ok := r.redirects.Port(wanted)
	if ok && r.backends[port] != nil {
		return r.backends[port], nil
	}
	if r.open {
		if port, ok = r.redirects.Assign(wanted, r.ports()); ok {
			return r.backends[port], nil
		}
	}
	return nil, fmt.Errorf("no port of the responder Service %s is left for it", r.service)
}

func (r *responder) ports() []int {
	var list []int
	for port := range r.backends {
		list = append(list, port)
	}
	return list
}

// wanted is the redirect that a filter asks for, as the responder would give it to requests that match m.
func wanted(filter *gwv1.HTTPRequestRedirectFilter, m match) (answer.Redirect, error) {
	r := answer.Redirect{Code: 302}
	if filter.StatusCode != nil {
		r.Code = *filter.StatusCode
	}
	if filter.Scheme != nil {
		r.Scheme = *filter.Scheme
	}
	if filter.Hostname != nil {
		r.Host = string(*filter.Hostname)
	}
	if filter.Port != nil {
		r.Port = int(*filter.Port)
	}
	if p := filter.Path; p != nil {
		switch {
		case p.Type == gwv1.FullPathHTTPPathModifier && p.ReplaceFullPath != nil:
			if r.FullPath = *p.ReplaceFullPath; r.FullPath == "" {
				r.FullPath = "/"
			}
		case p.Type == gwv1.PrefixMatchHTTPPathModifier && p.ReplacePrefixMatch != nil && (m.path.kind == anyPath || m.path.kind == prefixPath):
			r.Prefix, r.Replacement = m.path.value, *p.ReplacePrefixMatch
		default:
			return r, fmt.Errorf("replacePrefixMatch needs a PathPrefix match")
		}
	}
	return r.Normal()
}

// filled puts the answer 503 in the place of backends without endpoints when others have some: they would get its share. With none at all
// HAProxy answers 503 itself.
func (r *responder) filled(shares []share) []share {
	empty := func(s share) bool { return s.weight > 0 && len(s.backend.endpoints) == 0 }
	some := slices.ContainsFunc(shares, func(s share) bool { return s.weight > 0 && len(s.backend.endpoints) > 0 })
	if !r.on || !some || !slices.ContainsFunc(shares, empty) {
		return shares
	}
	all := slices.Clone(shares)
	for i := range all {
		if empty(all[i]) {
			all[i].backend = r.backend(answer.NoEndpoint)
		}
	}
	return normalShares(all)
}
