package plan

import (
	"flag"
	"os"
	"testing"
)

// TestMain tries more than a hundred cases for each property, unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := testing.Short()
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "250"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
