package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestServer_tellsWhatItSaw(t *testing.T) {
	t.Parallel()
	s := &server{pod: "p", namespace: "n", node: "node1", text: "blue"}
	srv := httptest.NewServer(s)
	defer srv.Close()
	req, err := http.NewRequest(http.MethodGet, srv.URL+"/a/b?status=418", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "shop.test"
	req.Header.Set("X-Color", "red")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var a answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusTeapot || res.Header.Get("X-Echo-Pod") != "p" {
		t.Errorf("status %d, header %v", res.StatusCode, res.Header)
	}
	if a.Pod != "p" || a.Namespace != "n" || a.Node != "node1" || a.Text != "blue" || a.Path != "/a/b" || a.Host != "shop.test" || a.Headers["X-Color"][0] != "red" || a.Local == "" {
		t.Errorf("got %+v", a)
	}
}

func TestServer_isUnhealthyWhileDraining(t *testing.T) {
	t.Parallel()
	s := &server{}
	for want, draining := range map[int]bool{http.StatusOK: false, http.StatusServiceUnavailable: true} {
		s.draining.Store(draining)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		if w.Code != want {
			t.Errorf("draining %v: %d", draining, w.Code)
		}
		w = httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("requests are refused while draining: %d", w.Code)
		}
	}
}

func TestServer_tellsWhatItSawOverTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(&server{})
	defer srv.Close()
	client := srv.Client()
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com"
	req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var a answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.TLS == nil || a.TLS.ServerName != "example.com" || a.TLS.Version != "TLS 1.3" || a.TLS.Client != "" {
		t.Errorf("got %+v", a.TLS)
	}
}
