package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

func TestTokenCache_renewsInTheLastFifthOfALife(t *testing.T) {
	t.Parallel()
	now, issued, broken := noon, 0, false
	client := fake.NewSimpleClientset()
	client.PrependReactor("create", "serviceaccounts", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if broken {
			return true, nil, errors.New("no answer")
		}
		req := a.(k8stesting.CreateAction).GetObject().(*authv1.TokenRequest)
		if a.GetSubresource() != "token" || req.Spec.BoundObjectRef.Name != "web-0" {
			t.Errorf("asked for %s %+v", a.GetSubresource(), req.Spec)
		}
		issued++
		return true, &authv1.TokenRequest{Status: authv1.TokenRequestStatus{Token: fmt.Sprint("t", issued), ExpirationTimestamp: metav1.NewTime(now.Add(100 * time.Minute))}}, nil
	})
	c := newTokenCache(client)
	c.now = func() time.Time { return now }
	get := func() string {
		s, err := c.get(context.Background(), testPod(), &corev1.ServiceAccountTokenProjection{})
		if err != nil {
			return err.Error()
		}
		return s
	}
	for _, step := range []struct {
		at     time.Duration
		broken bool
		want   string
	}{{0, false, "t1"}, {79, false, "t1"}, {81, true, "t1"}, {81, false, "t2"}, {182, true, "no answer"}, {183, false, "t3"}} {
		now, broken = noon.Add(step.at*time.Minute), step.broken
		if got := get(); got != step.want {
			t.Errorf("after %v minutes: %s, want %s", step.at.Nanoseconds(), got, step.want)
		}
	}
	c.forget(testPod().UID)
	if len(c.kept) != 0 {
		t.Error("tokens of a gone Pod are kept")
	}
}
