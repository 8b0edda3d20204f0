package main

import (
	"context"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// tokenCache asks for service account tokens and keeps them until most of
// their life is over.
type tokenCache struct {
	client kubernetes.Interface
	now    func() time.Time

	mu   sync.Mutex
	kept map[tokenKey]keptToken
}

type tokenKey struct {
	pod      types.UID
	audience string
	seconds  int64
}

type keptToken struct {
	token         string
	issued, until time.Time
}

func newTokenCache(client kubernetes.Interface) *tokenCache {
	return &tokenCache{client: client, now: time.Now, kept: map[tokenKey]keptToken{}}
}

func (t *tokenCache) get(ctx context.Context, pod *corev1.Pod, spec *corev1.ServiceAccountTokenProjection) (string, error) {
	key := tokenKey{pod.UID, spec.Audience, deref(spec.ExpirationSeconds)}
	t.mu.Lock()
	have, ok := t.kept[key]
	t.mu.Unlock()
	if ok && t.now().Before(have.issued.Add(have.until.Sub(have.issued)*4/5)) {
		return have.token, nil
	}
	req := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		ExpirationSeconds: spec.ExpirationSeconds,
		BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	if spec.Audience != "" {
		req.Spec.Audiences = []string{spec.Audience}
	}
	issued := t.now()
	got, err := t.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, req, metav1.CreateOptions{})
	switch {
	case err == nil:
	case ok && t.now().Before(have.until): // better an old token than none
		return have.token, nil
	default:
		return "", err
	}
	t.mu.Lock()
	t.kept[key] = keptToken{got.Status.Token, issued, got.Status.ExpirationTimestamp.Time}
	t.mu.Unlock()
	return got.Status.Token, nil
}

// forget drops the tokens of a Pod that is gone.
func (t *tokenCache) forget(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.kept {
		if k.pod == pod {
			delete(t.kept, k)
		}
	}
}
