package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeReport writes the gap report of the runs of one release as Markdown.
func writeReport(w io.Writer, runs []run) error {
	p := &printer{w: w}
	p.line("# Conformance with Gateway API %s on OpenStack %s", runs[0].Ground["gateway-api"], runs[0].Ground["release"])
	p.line("")
	p.line("Written by `make conformance`; what it means and how to repeat it: [README.md](README.md).")
	p.line("")
	p.summary(runs)
	p.line("## What does not pass, and why")
	p.line("")
	for _, r := range reasonsOf(runs) {
		p.line("**%s** (%s). %s", r.title, r.cause, r.fact)
		p.line("")
		for _, t := range profileTests() {
			var in []string
			for _, run := range runs {
				if g, ok := gapOf(t.name, run.Configuration); ok && g.reason == r && failed(run, t) {
					in = append(in, string(run.Configuration))
				}
			}
			if len(in) > 0 {
				p.line("- %s (%s)", t.name, strings.Join(in, ", "))
			}
		}
		p.line("")
	}
	p.line("## Features")
	p.line("")
	p.line("A feature is claimed in `GatewayClass.status.supportedFeatures` exactly when all tests that need it, and nothing else that is not claimed, pass.")
	p.line("")
	p.line("| feature | %s |", columns(runs))
	p.line("|---|%s", strings.Repeat("---|", len(runs)))
	for _, f := range profileFeatures() {
		p.row(f, runs, func(r run) string {
			if slices.Contains(r.Claims, f) {
				return "claimed"
			}
			return ""
		})
	}
	p.line("")
	p.line("## Tests")
	p.line("")
	p.line("Seconds are how long the test took, with everything that it waits for.")
	p.line("")
	p.line("| test | needs, beyond core | %s |", columns(runs))
	p.line("|---|---|%s", strings.Repeat("---|", len(runs)))
	for _, t := range profileTests() {
		p.row(t.name+" | "+strings.Join(t.extended, ", "), runs, func(r run) string {
			o, ok := r.Outcomes[t.name]
			switch {
			case !ok:
				return "not run"
			case o.Passed:
				return fmt.Sprintf("pass, %.0f s", o.Seconds)
			default:
				return fmt.Sprintf("**fail**, %.0f s", o.Seconds)
			}
		})
	}
	return p.err
}

// printer writes lines until one fails.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", a...)
	}
}

func (p *printer) row(head string, runs []run, cell func(run) string) {
	cells := make([]string, 0, len(runs))
	for _, r := range runs {
		cells = append(cells, cell(r))
	}
	p.line("| %s | %s |", head, strings.Join(cells, " | "))
}

func (p *printer) summary(runs []run) {
	p.line("| | %s |", columns(runs))
	p.line("|---|%s", strings.Repeat("---|", len(runs)))
	p.row("core tests that pass", runs, func(r run) string { return share(r, func(t profileTest) bool { return len(t.extended) == 0 }) })
	p.row("extended tests that pass", runs, func(r run) string { return share(r, func(t profileTest) bool { return len(t.extended) > 0 }) })
	p.row("extended features claimed", runs, func(r run) string {
		n := 0
		for _, f := range r.Claims {
			if isExtended(f) {
				n++
			}
		}
		return fmt.Sprint(n)
	})
	p.row("time of the claimed tests", runs, func(r run) string { return minutes(r.Seconds[phaseClaimed]) })
	p.row("time of the others", runs, func(r run) string { return minutes(r.Seconds[phaseUnclaimed]) })
	p.row("of that time Octavia was at work on a load balancer", runs, func(r run) string { return fmt.Sprintf("%.0f %%", 100*r.Pending) })
	for _, key := range []string{"date", "controller", "kubernetes", "octavia", "haproxy"} {
		p.row(key, runs, func(r run) string { return r.Ground[key] })
	}
	p.line("")
}

func columns(runs []run) string {
	names := make([]string, 0, len(runs))
	for _, r := range runs {
		names = append(names, string(r.Configuration))
	}
	return strings.Join(names, " | ")
}

func share(r run, of func(profileTest) bool) string {
	all, passed := 0, 0
	for _, t := range profileTests() {
		if !of(t) {
			continue
		}
		all++
		if r.Outcomes[t.name].Passed {
			passed++
		}
	}
	return fmt.Sprintf("%d of %d", passed, all)
}

func minutes(seconds float64) string { return fmt.Sprintf("%.0f min", seconds/60) }

func failed(r run, t profileTest) bool {
	o, ran := r.Outcomes[t.name]
	return ran && !o.Passed
}

// reasonsOf are the reasons of the tests that failed, in the order of gaps.go.
func reasonsOf(runs []run) []*reason {
	var out []*reason
	for _, g := range gaps {
		if slices.Contains(out, g.reason) {
			continue
		}
		if slices.ContainsFunc(runs, func(r run) bool {
			_, ok := gapOf(g.test, r.Configuration)
			return ok && failed(r, profileTest{name: g.test})
		}) {
			out = append(out, g.reason)
		}
	}
	return out
}
