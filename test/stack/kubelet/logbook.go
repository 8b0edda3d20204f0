package main

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// logbook keeps the newest output of one run of a container.
type logbook struct {
	mu    sync.Mutex
	lines []line
	size  int
	// first is the number of lines that were dropped.
	first  int
	ended  bool
	change chan struct{} // closed at every change
	copyTo io.Writer     // may be nil
}

type line struct {
	at   time.Time
	text string
}

// maxLogBytes bounds the memory of one logbook; the file beside it has all.
const maxLogBytes = 4 << 20

func newLogbook(copyTo io.Writer) *logbook {
	return &logbook{change: make(chan struct{}), copyTo: copyTo}
}

func (l *logbook) add(at time.Time, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line{at, text})
	for l.size += len(text); l.size > maxLogBytes && len(l.lines) > 1; l.first++ {
		l.size -= len(l.lines[0].text)
		l.lines = l.lines[1:]
	}
	if l.copyTo != nil {
		// The copy is for people; losing it must not stop the Pod.
		_, _ = fmt.Fprintf(l.copyTo, "%s %s\n", at.UTC().Format(time.RFC3339Nano), text)
	}
	l.wake()
}

func (l *logbook) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.wake()
	}
}

func (l *logbook) wake() {
	close(l.change)
	l.change = make(chan struct{})
}

// from returns the lines with number n and above, the number after the last
// one, whether no more will come, and a channel that is closed when some do.
func (l *logbook) from(n int) (lines []line, next int, ended bool, change <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if skip := max(n-l.first, 0); skip < len(l.lines) {
		lines = append(lines, l.lines[skip:]...)
	}
	return lines, l.first + len(l.lines), l.ended, l.change
}

// tail returns the end of the output, for a termination message.
func (l *logbook) tail(lines, limit int) string {
	all, _, _, _ := l.from(0)
	var b bytes.Buffer
	for _, x := range all[max(0, len(all)-lines):] {
		b.WriteString(x.text + "\n")
	}
	return string(b.Bytes()[max(0, b.Len()-limit):])
}

// lineWriter cuts what a process writes into lines of a logbook.
type lineWriter struct {
	book    *logbook
	now     func() time.Time
	partial []byte
}

// maxLine is where a line without an end is cut.
const maxLine = 64 << 10

// Write never fails: a container must not notice its log.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		w.book.add(w.now(), string(append(w.partial, p[:i]...)))
		w.partial, p = w.partial[:0], p[i+1:]
	}
	if w.partial = append(w.partial, p...); len(w.partial) >= maxLine {
		w.flush()
	}
	return n, nil
}

func (w *lineWriter) flush() {
	if len(w.partial) > 0 {
		w.book.add(w.now(), string(w.partial))
		w.partial = w.partial[:0]
	}
}

// logQuery are the parameters of a request for logs.
type logQuery struct {
	follow, previous, timestamps bool
	since                        time.Time
	tail, limit                  int64 // -1: all
}

func parseLogQuery(v url.Values, now time.Time) (logQuery, error) {
	q := logQuery{follow: v.Get("follow") == "true", previous: v.Get("previous") == "true", timestamps: v.Get("timestamps") == "true", tail: -1, limit: -1}
	for name, to := range map[string]*int64{"tailLines": &q.tail, "limitBytes": &q.limit} {
		if s := v.Get(name); s != "" {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 0 {
				return q, fmt.Errorf("%s=%q is not a number", name, s)
			}
			*to = n
		}
	}
	if s := v.Get("sinceTime"); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return q, fmt.Errorf("sinceTime=%q is not a time", s)
		}
		q.since = t
	}
	if s := v.Get("sinceSeconds"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return q, fmt.Errorf("sinceSeconds=%q is not a number", s)
		}
		q.since = now.Add(-time.Duration(n) * time.Second)
	}
	return q, nil
}

// keep returns the lines that a query asks for among those already written.
func (q *logQuery) keep(lines []line) []line {
	if !q.since.IsZero() {
		var late []line
		for _, l := range lines {
			if !l.at.Before(q.since) {
				late = append(late, l)
			}
		}
		lines = late
	}
	if q.tail >= 0 && int64(len(lines)) > q.tail {
		lines = lines[int64(len(lines))-q.tail:]
	}
	return lines
}

func (q *logQuery) format(l line) string {
	if q.timestamps {
		return l.at.UTC().Format(time.RFC3339Nano) + " " + l.text + "\n"
	}
	return l.text + "\n"
}
