package compile_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes the property tests repeatable: the seed is the same each time unless -rapid.seed gives another.
func TestMain(m *testing.M) {
	flag.Parse()
	if seed := flag.Lookup("rapid.seed"); seed != nil && seed.Value.String() == "0" {
		if err := flag.Set("rapid.seed", "20260101"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
