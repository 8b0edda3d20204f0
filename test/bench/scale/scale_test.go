package scale

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// The variables that make sets. Without the first, sizes are those of a smoke test and Octavia is quick.
const (
	envSizes   = "GATEWAY_API_OPENSTACK_SCALE"         // numbers of Gateways: 10,100,1000
	envPublish = "GATEWAY_API_OPENSTACK_SCALE_PUBLISH" // the directory for the report
)

// The targets that do not depend on the machine, at any size, and those at a thousand Gateways.
const (
	mostResident = 1 << 30
	mostIdle     = 0.02
	// The debounce is a second.
	mostEndpoint = 2 * time.Second
	mostExponent = 1.15
)

func TestScale(t *testing.T) {
	sizes := []size{{gateways: 2, nodes: 3}}
	latency, how := sim.Latency(quick), measuring{quiet: 500 * time.Millisecond, rest: 200 * time.Millisecond, changes: 2, every: 100 * time.Millisecond, base: time.Minute, patience: time.Second}
	full := os.Getenv(envSizes) != ""
	if full {
		sizes = nil
		for _, f := range strings.Split(os.Getenv(envSizes), ",") {
			n, err := strconv.Atoi(strings.TrimSpace(f))
			if err != nil || n < 1 {
				t.Fatalf("%s is %q: numbers of Gateways with commas between are wanted", envSizes, os.Getenv(envSizes))
			}
			sizes = append(sizes, size{gateways: n, nodes: 100})
		}
		latency, how = amphora, measuring{quiet: 5 * time.Second, rest: 30 * time.Second, changes: 200, every: 700 * time.Millisecond, base: 10 * time.Minute, patience: 10 * time.Second}
	}
	load := busy()
	var results []result
	for _, s := range sizes {
		t.Run(strconv.Itoa(s.gateways), func(t *testing.T) {
			m := how
			m.changes = min(m.changes, s.gateways*(servicesEach-1))
			r := measure(newWorld(t, latency), s, m)
			results = append(results, r)
			if r.restartMutations != 0 {
				t.Errorf("the restart changed something in the cloud: %d calls", r.restartMutations)
			}
			if r.extraMutations != 0 {
				t.Errorf("%d calls more than one for each pool with an endpoint's change", r.extraMutations)
			}
			if !full {
				return
			}
			if r.resident > mostResident {
				t.Errorf("resident memory at rest is %.0f MiB", r.resident/mebi)
			}
			if r.idle > mostIdle {
				t.Errorf("CPU at rest is %.1f %% of a core", r.idle*100)
			}
			if r.p99 > mostEndpoint {
				t.Errorf("an endpoint's change takes %s to the wire (p99)", r.p99)
			}
		})
	}
	t.Log("load average before: " + load + "\n" + table(results))
	for i := 1; i < len(results); i++ {
		for _, q := range quantities {
			if e := exponent(results[i-1], results[i], q.of); e > mostExponent {
				t.Errorf("%s grows with exponent %.2f from %d to %d Gateways", q.name, e, results[i-1].gateways, results[i].gateways)
			}
		}
	}
	if dir := os.Getenv(envPublish); dir != "" && !t.Failed() {
		if err := publish(dir, load, results); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlot_isAnImage(t *testing.T) {
	t.Parallel()
	results := []result{{size: size{gateways: 10}, cold: time.Second}, {size: size{gateways: 100}, cold: 12 * time.Second}, {size: size{gateways: 1000}}}
	for _, q := range quantities {
		d := xml.NewDecoder(strings.NewReader(plot(q, results)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", q.name, err)
			}
		}
		if strings.Contains(plot(q, results), "NaN") {
			t.Errorf("%s: not a number", q.name)
		}
	}
}
