package main

import (
	"net/netip"
	"strings"
	"testing"
)

func TestAddresses_leavesOutNetworkGatewayAndBroadcast(t *testing.T) {
	t.Parallel()
	a := newAddresses(netip.MustParsePrefix("10.244.1.0/29"))
	var got []string
	for {
		addr, err := a.take()
		if err != nil {
			if !strings.Contains(err.Error(), "10.244.1.0/29") {
				t.Errorf("the error does not name the range: %v", err)
			}
			break
		}
		got = append(got, addr.String())
	}
	if want := "10.244.1.2 10.244.1.3 10.244.1.4 10.244.1.5 10.244.1.6"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAddresses_reusesAsLateAsPossible(t *testing.T) {
	t.Parallel()
	a := newAddresses(netip.MustParsePrefix("10.244.1.0/29"))
	first, _ := a.take()
	a.release(first)
	var last netip.Addr
	for range 5 {
		var err error
		if last, err = a.take(); err != nil {
			t.Fatal(err)
		}
	}
	if last != first {
		t.Errorf("the released %s came back before the others; last was %s", first, last)
	}
	if _, err := a.take(); err == nil {
		t.Error("a full range still gave an address")
	}
	a.release(last)
	if again, err := a.take(); err != nil || again != last {
		t.Errorf("got %s, %v; want %s", again, err, last)
	}
}

func TestAddresses_smallestRangeGivesAnError(t *testing.T) {
	t.Parallel()
	a := newAddresses(netip.MustParsePrefix("10.244.1.0/31"))
	if got, err := a.take(); err == nil {
		t.Errorf("got %s from a range without usable addresses", got)
	}
}
