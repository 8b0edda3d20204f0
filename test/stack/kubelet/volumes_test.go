package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func fixedToken(_ context.Context, pod *corev1.Pod, _ *corev1.ServiceAccountTokenProjection) (string, error) {
	return "token of " + pod.Spec.ServiceAccountName, nil
}

func renderOne(t *testing.T, v corev1.VolumeSource) (content, error) {
	t.Helper()
	return render(context.Background(), testPod(), &corev1.Volume{Name: "v", VolumeSource: v}, testFacts, testStore(), fixedToken)
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func TestRender_serviceAccountVolumeHoldsTokenCAAndNamespace(t *testing.T) {
	t.Parallel()
	got, err := renderOne(t, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: named("kube-root-ca.crt"), Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"token": "token of web", "ca.crt": "CA", "namespace": "shop"} {
		if string(got[path].data) != want {
			t.Errorf("%s = %q, want %q", path, got[path].data, want)
		}
	}
	if !got["token"].token || got["token"].mode != 0o600 || got["ca.crt"].token {
		t.Errorf("marks and modes: %+v", got)
	}
}

func TestRender_secretAndConfigMapKeysAndModes(t *testing.T) {
	t.Parallel()
	m := int32(0o400)
	got, err := renderOne(t, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cloud", DefaultMode: &m, Items: []corev1.KeyToPath{{Key: "clouds.yaml", Path: "etc/clouds.yaml"}}}})
	if err != nil || len(got) != 1 || got["etc/clouds.yaml"].mode != 0o400 || string(got["etc/clouds.yaml"].data) != "a: b" {
		t.Errorf("secret: %+v, %v", got, err)
	}
	got, err = renderOne(t, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("settings")}})
	if err != nil || len(got) != 2 || string(got["LEVEL"].data) != "3" || len(got["blob"].data) != 2 || got["blob"].mode != 0o644 {
		t.Errorf("configmap: %+v, %v", got, err)
	}
}

func TestRender_missingIsAnErrorUnlessOptional(t *testing.T) {
	t.Parallel()
	yes := true
	for want, v := range map[string]corev1.VolumeSource{
		`volume "v": secret "absent" not found`:              {Secret: &corev1.SecretVolumeSource{SecretName: "absent"}},
		`volume "v": configmap "absent" not found`:           {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("absent")}},
		`volume "v": secret "cloud" has no key "k"`:          {Secret: &corev1.SecretVolumeSource{SecretName: "cloud", Items: []corev1.KeyToPath{{Key: "k", Path: "k"}}}},
		`volume "v": this type of volume is not supported`:   {HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
		`volume "v": this type of projected source is not s`: {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}}}},
	} {
		if _, err := renderOne(t, v); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	got, err := renderOne(t, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "absent", Optional: &yes}})
	if err != nil || len(got) != 0 {
		t.Errorf("optional: %v, %v", got, err)
	}
}

func TestRender_failedTokenNamesTheServiceAccount(t *testing.T) {
	t.Parallel()
	v := &corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}}
	_, err := render(context.Background(), testPod(), v, testFacts, testStore(),
		func(context.Context, *corev1.Pod, *corev1.ServiceAccountTokenProjection) (string, error) {
			return "", errors.New("forbidden")
		})
	if err == nil || !strings.Contains(err.Error(), `service account "web": forbidden`) {
		t.Errorf("got %v", err)
	}
}
