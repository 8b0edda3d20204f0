package robustness

import (
	"slices"
	"strings"
)

// shrink leaves events out of a schedule that fails, as long as it still fails, with not too many tries. It says how it fails then.
func shrink(dir string, seed uint64, schedule []event, failure error) ([]event, error) {
	tries := 400
	for size := len(schedule) / 2; size > 0 && tries > 0; {
		shorter := false
		for at := 0; at+size <= len(schedule) && tries > 0; {
			tries--
			less := slices.Delete(slices.Clone(schedule), at, at+size)
			if err := play(dir, seed, less, nil); err != nil {
				schedule, failure, shorter = less, err, true
			} else {
				at += size
			}
		}
		if !shorter || size > len(schedule) {
			size = min(size/2, len(schedule))
		}
	}
	return schedule, failure
}

func scheduleText(schedule []event) string {
	var b strings.Builder
	for _, e := range schedule {
		b.WriteString("  " + e.String() + "\n")
	}
	return b.String()
}
