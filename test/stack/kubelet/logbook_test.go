package main

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestLineWriter_cutsLinesAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	var copied bytes.Buffer
	b := newLogbook(&copied)
	w := &lineWriter{book: b, now: func() time.Time { return noon }}
	for _, s := range []string{"one\ntw", "o\n\nthr", "ee"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := b.tail(10, 100); got != "one\ntwo\n\n" {
		t.Errorf("before the flush: %q", got)
	}
	w.flush()
	if got := b.tail(2, 100); got != "\nthree\n" {
		t.Errorf("after the flush: %q", got)
	}
	if got := copied.String(); !strings.HasPrefix(got, "2026-01-02T12:00:00Z one\n2026-01-02T12:00:00Z two\n") {
		t.Errorf("copy: %q", got)
	}
	_, _ = w.Write(bytes.Repeat([]byte("x"), maxLine))
	if got := b.tail(1, maxLine*2); len(got) != maxLine+1 {
		t.Errorf("an endless line was cut at %d", len(got))
	}
}

func TestLogbook_dropsTheOldestAndGoesOnCounting(t *testing.T) {
	t.Parallel()
	b := newLogbook(nil)
	half := strings.Repeat("x", maxLogBytes/2)
	for range 3 {
		b.add(noon, half)
	}
	lines, next, ended, _ := b.from(0)
	if len(lines) != 2 || next != 3 || ended {
		t.Errorf("%d lines, next %d, ended %v", len(lines), next, ended)
	}
	if lines, _, _, _ := b.from(3); len(lines) != 0 {
		t.Errorf("lines after the last: %v", len(lines))
	}
}

func TestLogbook_wakesFollowers(t *testing.T) {
	t.Parallel()
	b := newLogbook(nil)
	_, _, _, change := b.from(0)
	go b.add(noon, "x")
	<-change
	_, next, ended, change := b.from(0)
	if next != 1 || ended {
		t.Fatal(next, ended)
	}
	go b.end()
	<-change
	if _, _, ended, _ := b.from(next); !ended {
		t.Error("the end was not told")
	}
}

func TestLogQuery_selects(t *testing.T) {
	t.Parallel()
	all := []line{{noon.Add(-time.Hour), "a"}, {noon.Add(-time.Minute), "b"}, {noon.Add(-time.Second), "c"}}
	for query, want := range map[string]string{
		"":                                  "a b c",
		"tailLines=2":                       "b c",
		"tailLines=0":                       "",
		"sinceSeconds=120":                  "b c",
		"sinceTime=2026-01-02T11:59:59Z":    "c",
		"sinceSeconds=120&tailLines=1":      "c",
		"timestamps=true&sinceSeconds=10":   "2026-01-02T11:59:59Z c",
		"follow=true&previous=true&unknown": "a b c",
	} {
		v, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := parseLogQuery(v, noon)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		var got []string
		for _, l := range q.keep(all) {
			got = append(got, strings.TrimSuffix(q.format(l), "\n"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	for _, bad := range []string{"tailLines=x", "tailLines=-1", "limitBytes=x", "sinceSeconds=x", "sinceTime=x"} {
		v, _ := url.ParseQuery(bad)
		if _, err := parseLogQuery(v, noon); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
