package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// objects reads what a Pod refers to. It returns nil for an object that does
// not exist.
type objects interface {
	secret(namespace, name string) *corev1.Secret
	configMap(namespace, name string) *corev1.ConfigMap
}

// facts are what a container may learn about its Pod beyond the object.
type facts struct {
	podIP, hostIP netip.Addr
	// apiServer is the address of the Service "kubernetes".
	apiServer netip.AddrPort
}

// environ returns the environment of a container as KEY=VALUE, in the order
// and with the precedence that Kubernetes documents.
func environ(pod *corev1.Pod, c *corev1.Container, f facts, src objects) ([]string, error) {
	e := newVariables()
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("HOSTNAME", pod.Name)
	e.set("HOME", "/")
	host, port := f.apiServer.Addr().String(), strconv.Itoa(int(f.apiServer.Port()))
	e.set("KUBERNETES_SERVICE_HOST", host)
	e.set("KUBERNETES_SERVICE_PORT", port)
	e.set("KUBERNETES_SERVICE_PORT_HTTPS", port)

	for _, from := range c.EnvFrom {
		data, err := everyKey(pod.Namespace, from, src)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			e.set(from.Prefix+key, data[key])
		}
	}
	for _, v := range c.Env {
		if v.ValueFrom == nil {
			e.set(v.Name, expand(v.Value, e.lookup))
			continue
		}
		value, found, err := valueFrom(pod, c, v.ValueFrom, f, src)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s: %w", v.Name, err)
		}
		if found {
			e.set(v.Name, value)
		}
	}
	return e.list(), nil
}

// everyKey returns all keys of the object that an envFrom names.
func everyKey(namespace string, from corev1.EnvFromSource, src objects) (map[string]string, error) {
	out := map[string]string{}
	switch {
	case from.ConfigMapRef != nil:
		m := src.configMap(namespace, from.ConfigMapRef.Name)
		if m == nil && !deref(from.ConfigMapRef.Optional) {
			return nil, fmt.Errorf("configmap %q not found", from.ConfigMapRef.Name)
		}
		if m != nil {
			maps.Copy(out, m.Data)
		}
	case from.SecretRef != nil:
		s := src.secret(namespace, from.SecretRef.Name)
		if s == nil && !deref(from.SecretRef.Optional) {
			return nil, fmt.Errorf("secret %q not found", from.SecretRef.Name)
		}
		if s != nil {
			for k, v := range s.Data {
				out[k] = string(v)
			}
		}
	}
	return out, nil
}

func valueFrom(pod *corev1.Pod, c *corev1.Container, v *corev1.EnvVarSource, f facts, src objects) (value string, found bool, err error) {
	switch {
	case v.FieldRef != nil:
		value, err = podField(pod, v.FieldRef.FieldPath, f)
		return value, err == nil, err
	case v.ResourceFieldRef != nil:
		value, err = containerResource(c, v.ResourceFieldRef)
		return value, err == nil, err
	case v.ConfigMapKeyRef != nil:
		r := v.ConfigMapKeyRef
		if m := src.configMap(pod.Namespace, r.Name); m != nil {
			if value, found = m.Data[r.Key]; found {
				return value, true, nil
			}
		}
		if deref(r.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("configmap %q with key %q not found", r.Name, r.Key)
	case v.SecretKeyRef != nil:
		r := v.SecretKeyRef
		if s := src.secret(pod.Namespace, r.Name); s != nil {
			if data, ok := s.Data[r.Key]; ok {
				return string(data), true, nil
			}
		}
		if deref(r.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("secret %q with key %q not found", r.Name, r.Key)
	}
	return "", false, fmt.Errorf("this kind of valueFrom is not supported by the process kubelet")
}

// podField resolves a downward API field path.
func podField(pod *corev1.Pod, path string, f facts) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return properties(pod.Labels), nil
	case "metadata.annotations":
		return properties(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return f.hostIP.String(), nil
	case "status.podIP", "status.podIPs":
		return f.podIP.String(), nil
	}
	for prefix, m := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			if key, ok = strings.CutSuffix(key, "']"); ok {
				return m[key], nil
			}
		}
	}
	return "", fmt.Errorf("field %q is not supported by the process kubelet", path)
}

// properties prints a map as the downward API does in files.
func properties(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s=%q\n", k, m[k])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// containerResource resolves limits and requests; an unset limit is what the
// node reports as allocatable, as in the real kubelet.
func containerResource(c *corev1.Container, r *corev1.ResourceFieldSelector) (string, error) {
	kind, name, ok := strings.Cut(r.Resource, ".")
	list := map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests}
	from, known := list[kind]
	if !ok || !known {
		return "", fmt.Errorf("resource %q is not supported by the process kubelet", r.Resource)
	}
	q, set := from[corev1.ResourceName(name)]
	if !set && kind == "limits" {
		q = capacity()[corev1.ResourceName(name)]
	}
	divisor := r.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	value, by := q.Value(), divisor.Value()
	if name == string(corev1.ResourceCPU) {
		value, by = q.MilliValue(), divisor.MilliValue()
	}
	return strconv.FormatInt((value+by-1)/by, 10), nil
}

// expand replaces $(NAME) by the variable; an unknown name stays as written,
// and $$ stands for one dollar sign.
func expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		switch rest := s[i+1:]; {
		case rest[0] == '$':
			b.WriteByte('$')
			s = rest[1:]
		case rest[0] == '(' && strings.IndexByte(rest, ')') > 0:
			end := strings.IndexByte(rest, ')')
			name := rest[1:end]
			if v, ok := lookup(name); ok {
				b.WriteString(v)
			} else {
				b.WriteString("$(" + name + ")")
			}
			s = rest[end+1:]
		default:
			b.WriteByte('$')
			s = rest
		}
	}
}

// variables is an ordered map: a later value replaces an earlier one.
type variables struct {
	names  []string
	values map[string]string
}

func newVariables() *variables { return &variables{values: map[string]string{}} }

func (v *variables) set(name, value string) {
	if _, ok := v.values[name]; !ok {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

func (v *variables) lookup(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

func (v *variables) list() []string {
	out := make([]string, 0, len(v.names))
	for _, n := range v.names {
		out = append(out, n+"="+v.values[n])
	}
	return out
}

// argv returns a container's command line and the path under which the
// image's binary has to be found: images put their binary anywhere, and a
// Pod's command names the place.
func argv(c *corev1.Container, env []string) (path string, args []string) {
	e := newVariables()
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		e.set(name, value)
	}
	for _, s := range append(slices.Clone(c.Command), c.Args...) {
		args = append(args, expand(s, e.lookup))
	}
	path = entrypoint
	if len(c.Command) == 0 {
		return path, append([]string{path}, args...)
	}
	path = args[0]
	if !strings.HasPrefix(path, "/") {
		path = "/bin/" + path
	}
	return path, args
}

// entrypoint is where an image's binary lies when the Pod names no command.
const entrypoint = "/entrypoint"

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
