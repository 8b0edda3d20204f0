package scale

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// quantity is a line of the table, and a plot.
type quantity struct {
	name, unit, file string
	of               func(result) float64
}

const mebi = 1 << 20

var quantities = []quantity{
	{"cold start until all are programmed", "s", "cold-start", func(r result) float64 { return r.cold.Seconds() }},
	{"CPU time of the cold start", "s", "cold-cpu", func(r result) float64 { return r.coldCPU.Seconds() }},
	{"passes of the cold start", "", "cold-passes", func(r result) float64 { return float64(r.coldPasses) }},
	{"calls of the cold start: Octavia", "", "cold-octavia", func(r result) float64 { return float64(r.coldCalls["octavia"]) }},
	{"calls of the cold start: Neutron", "", "cold-neutron", func(r result) float64 { return float64(r.coldCalls["neutron"]) }},
	{"calls of the cold start: Barbican", "", "cold-barbican", func(r result) float64 { return float64(r.coldCalls["barbican"]) }},
	{"calls of the cold start: Keystone", "", "cold-keystone", func(r result) float64 { return float64(r.coldCalls["keystone"]) }},
	{"resident memory at rest", "MiB", "resident", func(r result) float64 { return r.resident / mebi }},
	{"resident memory, most", "MiB", "resident-peak", func(r result) float64 { return r.peak / mebi }},
	{"heap in use at rest", "MiB", "heap", func(r result) float64 { return r.heap / mebi }},
	{"CPU at rest", "% of a core", "idle", func(r result) float64 { return r.idle * 100 }},
	{"endpoint change to the call, p50", "s", "endpoint-p50", func(r result) float64 { return r.p50.Seconds() }},
	{"endpoint change to the call, p99", "s", "endpoint-p99", func(r result) float64 { return r.p99.Seconds() }},
	{"restart until all are known as programmed", "s", "restart", func(r result) float64 { return r.restart.Seconds() }},
	{"CPU time of the restart", "s", "restart-cpu", func(r result) float64 { return r.restartCPU.Seconds() }},
	{"passes of the restart", "", "restart-passes", func(r result) float64 { return float64(r.restartPasses) }},
	{"calls of the restart: Octavia", "", "restart-octavia", func(r result) float64 { return float64(r.restartCalls["octavia"]) }},
	{"calls of the restart: Neutron", "", "restart-neutron", func(r result) float64 { return float64(r.restartCalls["neutron"]) }},
	{"calls of the restart that change something", "", "restart-mutations", func(r result) float64 { return float64(r.restartMutations) }},
	{"resident memory after the restart", "MiB", "restart-resident", func(r result) float64 { return r.fresh / mebi }},
}

// plotted are the files of quantities that are worth a picture.
var plotted = map[string]bool{"cold-start": true, "resident": true, "endpoint-p99": true, "cold-octavia": true, "restart": true}

// exponent is that of y in n between two sizes: 1 is linear, 0 is constant. NaN when there is none.
func exponent(a, b result, of func(result) float64) float64 {
	if of(a) <= 0 || of(b) <= 0 {
		return math.NaN()
	}
	return math.Log(of(b)/of(a)) / math.Log(float64(b.gateways)/float64(a.gateways))
}

func table(results []result) string {
	var b strings.Builder
	line := func(cells ...string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rule := []string{"Gateways"}, []string{"---"}
	for _, r := range results {
		head, rule = append(head, fmt.Sprint(r.gateways)), append(rule, "---:")
	}
	line(append(head, "growth exponents")...)
	line(append(rule, "---")...)
	row := func(name string, of func(result) string, last string) {
		cells := []string{name}
		for _, r := range results {
			cells = append(cells, of(r))
		}
		line(append(cells, last)...)
	}
	row("routes", func(r result) string { return fmt.Sprint(r.routes()) }, "")
	row("Services", func(r result) string { return fmt.Sprint(r.services()) }, "")
	row("endpoints", func(r result) string { return fmt.Sprint(r.endpoints()) }, "")
	row("Nodes", func(r result) string { return fmt.Sprint(r.nodes) }, "")
	for _, q := range quantities {
		var growth []string
		for i := 1; i < len(results); i++ {
			if e := exponent(results[i-1], results[i], q.of); !math.IsNaN(e) {
				growth = append(growth, fmt.Sprintf("%.2f", e))
			}
		}
		row(q.name, func(r result) string { return strings.TrimSpace(number(q.of(r)) + " " + q.unit) }, strings.Join(growth, ", "))
	}
	return b.String()
}

func number(v float64) string {
	if v == math.Trunc(v) || v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// publish writes the table and the plots into a directory.
func publish(dir, load string, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What a number of Gateways costs\n\nWritten by `make bench-scale`; [README.md](README.md) says what it means.\n\n")
	fmt.Fprintf(&b, "%s, %s/%s, %d cores, shared with the API server, etcd and the simulator.\n", time.Now().UTC().Format("2006-01-02"), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintf(&b, "Load average of the machine before: %s. Above 0.5 others were at work: then times, CPU and latencies are upper bounds.\n\n", load)
	b.WriteString(table(results))
	for _, q := range quantities {
		if len(results) > 1 && plotted[q.file] {
			fmt.Fprintf(&b, "\n![%s by number of Gateways](%s.svg)\n", q.name, q.file)
			if err := os.WriteFile(filepath.Join(dir, q.file+".svg"), []byte(plot(q, results)), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "measured.md"), []byte(b.String()), 0o644)
}

// plot draws a quantity on two logarithmic axes, where a power is a straight line; a dashed one shows what linear growth from the first
// size would be.
func plot(q quantity, results []result) string {
	const width, height, left, right, top, bottom = 560.0, 320.0, 70.0, 20.0, 40.0, 50.0
	first, last := results[0], results[len(results)-1]
	least, most := math.Inf(1), math.Inf(-1)
	for _, r := range results {
		if v := q.of(r); v > 0 {
			least, most = min(least, v), max(most, v)
		}
	}
	if math.IsInf(least, 0) {
		least, most = 1, 1
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most))
	if low == high {
		high++
	}
	x := func(n int) float64 {
		return left + (width-left-right)*math.Log(float64(n)/float64(first.gateways))/math.Log(float64(last.gateways)/float64(first.gateways))
	}
	y := func(v float64) float64 {
		return height - bottom - (height-top-bottom)*(math.Log10(max(v, math.Pow(10, low)))-low)/(high-low)
	}
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`, width, height, width, height)
	p(`<rect width="%g" height="%g" fill="white"/>`, width, height)
	title := q.name
	if q.unit != "" {
		title += " [" + q.unit + "]"
	}
	p(`<text x="%g" y="22" font-size="14">%s</text>`, left, title)
	for e := low; e <= high; e++ {
		v := math.Pow(10, e)
		p(`<line x1="%g" y1="%.1f" x2="%g" y2="%.1f" stroke="#ddd"/><text x="%g" y="%.1f" text-anchor="end">%g</text>`, left, y(v), width-right, y(v), left-8, y(v)+4, v)
	}
	line := ""
	for _, r := range results {
		p(`<line x1="%.1f" y1="%g" x2="%.1f" y2="%g" stroke="#ddd"/><text x="%.1f" y="%g" text-anchor="middle">%d</text>`, x(r.gateways), top, x(r.gateways), height-bottom, x(r.gateways), height-bottom+18, r.gateways)
		line += fmt.Sprintf("%.1f,%.1f ", x(r.gateways), y(q.of(r)))
	}
	p(`<text x="%g" y="%g" text-anchor="middle">Gateways</text>`, (left+width-right)/2, height-12)
	// Linear growth, as far as it is on the paper.
	if v := q.of(first); v > 0 {
		ratio := min(float64(last.gateways)/float64(first.gateways), math.Pow(10, high)/v)
		end := left + (width-left-right)*math.Log(ratio)/math.Log(float64(last.gateways)/float64(first.gateways))
		p(`<line x1="%g" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999" stroke-dasharray="4 4"/>`, left, y(v), end, y(v*ratio))
	}
	p(`<polyline points="%s" fill="none" stroke="#06c" stroke-width="2"/>`, strings.TrimSpace(line))
	for _, r := range results {
		p(`<circle cx="%.1f" cy="%.1f" r="4" fill="#06c"/><text x="%.1f" y="%.1f">%s</text>`, x(r.gateways), y(q.of(r)), min(x(r.gateways)+7, width-60), y(q.of(r))-7, number(q.of(r)))
	}
	p(`</svg>`)
	return b.String()
}
