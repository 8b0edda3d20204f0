package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func get(t *testing.T, srv *httptest.Server, path string) (int, string) {
	t.Helper()
	res, err := srv.Client().Get(srv.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestRoutes_serveLogsAndRefuseTheRest(t *testing.T) {
	t.Parallel()
	c := newContainer(&corev1.Container{Name: "web"}, corev1.RestartPolicyAlways)
	srv := httptest.NewServer(routes(func(ns, pod, name string) *container {
		if ns+"/"+pod+"/"+name == "shop/web-0/web" {
			return c
		}
		return nil
	}))
	defer srv.Close()
	const path = "/containerLogs/shop/web-0/web"
	if code, body := get(t, srv, path); code != http.StatusOK || body != "" {
		t.Errorf("before the first run: %d %q", code, body)
	}
	c.book = newLogbook(nil)
	for _, s := range []string{"one", "two", "three"} {
		c.book.add(noon, s)
	}
	for query, want := range map[string]string{"": "200 one\ntwo\nthree\n", "?tailLines=1": "200 three\n", "?limitBytes=5": "200 one\nt", "?limitBytes=0": "200 ",
		"?previous=true": "404 the container has no previous run\n", "?tailLines=x": "400 tailLines=\"x\" is not a number\n"} {
		code, body := get(t, srv, path+query)
		if got := fmt.Sprint(code, " ", body); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if code, _ := get(t, srv, "/containerLogs/shop/web-1/web"); code != http.StatusNotFound {
		t.Errorf("another Pod: %d", code)
	}
	if code, body := get(t, srv, "/exec/shop/web-0/web"); code != http.StatusNotImplemented || !strings.Contains(body, "nsenter") {
		t.Errorf("exec: %d %s", code, body)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		c.book.add(noon, "four")
		c.book.end()
	}()
	if _, body := get(t, srv, path+"?follow=true&tailLines=1"); body != "three\nfour\n" {
		t.Errorf("followed: %q", body)
	}
}
