package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return errors.New("want judge, report or sample; see doc.go")
	}
	switch args[0] {
	case "judge":
		return judgeCommand(args[1:])
	case "report":
		return reportCommand(args[1:])
	case "sample":
		fmt.Println(strings.Join(sample, ","))
		return nil
	}
	return fmt.Errorf("no command %q; there are judge, report and sample", args[0])
}

// judgeCommand reads a log, writes the result as JSON and fails when something is wrong with it.
func judgeCommand(args []string) error {
	set := flag.NewFlagSet("judge", flag.ContinueOnError)
	c := set.String("configuration", "", "native or responder")
	only := set.String("only", "", "the tests that were run, separated by commas; all without it")
	claimedOnly := set.Bool("claimed-only", false, "the tests that have to fail were left out")
	ground := set.String("ground", "", "what the run stood on: key=value, separated by commas")
	pending := set.String("pending", "", "a file with how many load balancers were pending, once a second")
	out := set.String("out", "", "the file for the result")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 || *out == "" || (configuration(*c) != native && configuration(*c) != responder) {
		return errors.New("want judge -configuration native|responder -out FILE LOG")
	}
	log, err := os.Open(set.Arg(0))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // it is only read
	r, err := readLog(configuration(*c), log)
	if err != nil {
		return err
	}
	if *pending != "" {
		samples, err := os.ReadFile(*pending)
		if err != nil {
			return err
		}
		r.Pending = shareOf(string(samples))
	}
	r.Ground = map[string]string{}
	for _, pair := range strings.Split(*ground, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			r.Ground[key] = value
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(*out, append(text, '\n'), 0o644); err != nil {
		return err
	}
	tests := testsOfRun(r, splitList(*only), *claimedOnly)
	passed := 0
	for _, o := range r.Outcomes {
		if o.Passed {
			passed++
		}
	}
	fmt.Printf("%s: %d tests ran, %d passed\n", r.Configuration, len(r.Outcomes), passed)
	if wrong := judge(r, tests); len(wrong) > 0 {
		return fmt.Errorf("the run is not what gaps.go and the GatewayClass say:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// reportCommand reads results and writes the gap report to the standard output.
func reportCommand(files []string) error {
	if len(files) == 0 {
		return errors.New("name the results to report")
	}
	runs := make([]run, 0, len(files))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var r run
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		runs = append(runs, r)
	}
	return writeReport(os.Stdout, runs)
}
