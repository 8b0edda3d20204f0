package main

import (
	"context"
	"fmt"
	"maps"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// content is what a volume holds: slash-separated paths to files.
type content map[string]file

type file struct {
	data []byte
	mode os.FileMode
	// token marks a service account token: it is readable by the user that the
	// Pod runs as, and by nobody else.
	token bool
}

// tokens returns a current service account token for a Pod.
type tokens func(ctx context.Context, pod *corev1.Pod, spec *corev1.ServiceAccountTokenProjection) (string, error)

// holdsObjects says whether the kubelet writes the volume's files; an emptyDir
// belongs to the Pod.
func holdsObjects(v *corev1.Volume) bool { return v.EmptyDir == nil }

// render returns the files of a volume as they should be now.
func render(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, f facts, src objects, token tokens) (content, error) {
	out := content{}
	var err error
	switch {
	case v.Secret != nil:
		err = addSecret(out, pod, v.Secret.SecretName, v.Secret.Items, deref(v.Secret.Optional), mode(v.Secret.DefaultMode), src)
	case v.ConfigMap != nil:
		err = addConfigMap(out, pod, v.ConfigMap.Name, v.ConfigMap.Items, deref(v.ConfigMap.Optional), mode(v.ConfigMap.DefaultMode), src)
	case v.DownwardAPI != nil:
		err = addFields(out, pod, v.DownwardAPI.Items, mode(v.DownwardAPI.DefaultMode), f)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if err = addProjection(ctx, out, pod, &v.Projected.Sources[i], mode(v.Projected.DefaultMode), f, src, token); err != nil {
				break
			}
		}
	default:
		err = fmt.Errorf("this type of volume is not supported by the process kubelet (it knows secret, configMap, downwardAPI, projected and emptyDir)")
	}
	if err != nil {
		return nil, fmt.Errorf("volume %q: %w", v.Name, err)
	}
	return out, nil
}

func addProjection(ctx context.Context, out content, pod *corev1.Pod, p *corev1.VolumeProjection, m os.FileMode, f facts, src objects, token tokens) error {
	switch {
	case p.Secret != nil:
		return addSecret(out, pod, p.Secret.Name, p.Secret.Items, deref(p.Secret.Optional), m, src)
	case p.ConfigMap != nil:
		return addConfigMap(out, pod, p.ConfigMap.Name, p.ConfigMap.Items, deref(p.ConfigMap.Optional), m, src)
	case p.DownwardAPI != nil:
		return addFields(out, pod, p.DownwardAPI.Items, m, f)
	case p.ServiceAccountToken != nil:
		t, err := token(ctx, pod, p.ServiceAccountToken)
		if err != nil {
			return fmt.Errorf("token of service account %q: %w", pod.Spec.ServiceAccountName, err)
		}
		out[p.ServiceAccountToken.Path] = file{data: []byte(t), mode: 0o600, token: true}
		return nil
	}
	return fmt.Errorf("this type of projected source is not supported by the process kubelet")
}

func addSecret(out content, pod *corev1.Pod, name string, items []corev1.KeyToPath, optional bool, m os.FileMode, src objects) error {
	s := src.secret(pod.Namespace, name)
	if s == nil {
		return absent("secret", name, optional)
	}
	return pick(out, s.Data, items, "secret", name, optional, m)
}

func addConfigMap(out content, pod *corev1.Pod, name string, items []corev1.KeyToPath, optional bool, m os.FileMode, src objects) error {
	c := src.configMap(pod.Namespace, name)
	if c == nil {
		return absent("configmap", name, optional)
	}
	data := maps.Clone(c.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range c.Data {
		data[k] = []byte(v)
	}
	return pick(out, data, items, "configmap", name, optional, m)
}

func absent(kind, name string, optional bool) error {
	if optional {
		return nil
	}
	return fmt.Errorf("%s %q not found", kind, name)
}

// pick adds all keys, or those that items name.
func pick(out content, data map[string][]byte, items []corev1.KeyToPath, kind, name string, optional bool, m os.FileMode) error {
	if len(items) == 0 {
		for k, v := range data {
			out[k] = file{data: v, mode: m}
		}
		return nil
	}
	for _, it := range items {
		v, ok := data[it.Key]
		if !ok {
			if optional {
				continue
			}
			return fmt.Errorf("%s %q has no key %q", kind, name, it.Key)
		}
		fm := m
		if it.Mode != nil {
			fm = mode(it.Mode)
		}
		out[it.Path] = file{data: v, mode: fm}
	}
	return nil
}

func addFields(out content, pod *corev1.Pod, items []corev1.DownwardAPIVolumeFile, m os.FileMode, f facts) error {
	for _, it := range items {
		if it.FieldRef == nil {
			return fmt.Errorf("file %q: only fieldRef is supported by the process kubelet", it.Path)
		}
		v, err := podField(pod, it.FieldRef.FieldPath, f)
		if err != nil {
			return err
		}
		fm := m
		if it.Mode != nil {
			fm = mode(it.Mode)
		}
		out[it.Path] = file{data: []byte(v), mode: fm}
	}
	return nil
}

func mode(m *int32) os.FileMode {
	if m == nil {
		return 0o644
	}
	return os.FileMode(*m) & 0o777
}
