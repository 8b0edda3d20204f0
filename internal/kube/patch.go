package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one operation of a JSON patch (RFC 6902). Our writes are JSON patches because merge patches and updates send whole
// lists back: that would rewrite what others put into conditions and parents, and drop fields which our types do not know.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// jsonPatch makes a patch of operations that the API server refuses with a conflict when the object is not at
// resourceVersion any more: list indexes are valid for one version only.
func jsonPatch(resourceVersion string, operations []operation) (client.Patch, error) {
	all := append([]operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: resourceVersion}}, operations...)
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding a status patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, body), nil
}

// transition is a condition that changed its status or reason; listener is set for those of a listener.
type transition struct {
	listener string
	from, to metav1.Condition
}

// conditionsPatch makes the operations that bring an object's conditions from have to want. Types in remove go; all others
// stay untouched. Conditions that were observed for a newer generation than want's stay too.
func conditionsPatch(have, want []metav1.Condition, remove []string, now time.Time) (operations []operation, changed []transition) {
	const path = "/status/conditions"
	var missing []metav1.Condition
	for _, w := range want {
		i := slices.IndexFunc(have, func(c metav1.Condition) bool { return c.Type == w.Type })
		if i < 0 {
			w.LastTransitionTime = metav1.NewTime(now)
			missing = append(missing, w)
			changed = append(changed, transition{to: w})
			continue
		}
		h := have[i]
		if h.ObservedGeneration > w.ObservedGeneration {
			continue
		}
		w.LastTransitionTime = h.LastTransitionTime
		if h.Status != w.Status {
			w.LastTransitionTime = metav1.NewTime(now)
		}
		if h != w {
			operations = append(operations, operation{"replace", fmt.Sprintf("%s/%d", path, i), w})
			if h.Status != w.Status || h.Reason != w.Reason {
				changed = append(changed, transition{from: h, to: w})
			}
		}
	}
	// From the end, so that the indexes before stay valid.
	for i := len(have) - 1; i >= 0; i-- {
		if slices.Contains(remove, have[i].Type) {
			operations = append(operations, operation{Op: "remove", Path: fmt.Sprintf("%s/%d", path, i)})
		}
	}
	if len(missing) > 0 && len(have) == 0 {
		return append(operations, operation{"add", path, missing}), changed
	}
	for _, m := range missing {
		operations = append(operations, operation{"add", path + "/-", m})
	}
	return operations, changed
}

// mergeConditions is conditionsPatch as a value, for lists that are written as a whole.
func mergeConditions(have, want []metav1.Condition, remove []string, now time.Time) (merged []metav1.Condition, changed []transition) {
	for _, h := range have {
		if slices.Contains(remove, h.Type) && !slices.ContainsFunc(want, func(w metav1.Condition) bool { return w.Type == h.Type }) {
			continue
		}
		merged = append(merged, h)
	}
	for _, w := range want {
		i := slices.IndexFunc(merged, func(c metav1.Condition) bool { return c.Type == w.Type })
		switch {
		case i < 0:
			w.LastTransitionTime = metav1.NewTime(now)
			merged = append(merged, w)
			changed = append(changed, transition{to: w})
		case merged[i].ObservedGeneration > w.ObservedGeneration:
		default:
			h := merged[i]
			w.LastTransitionTime = h.LastTransitionTime
			if h.Status != w.Status {
				w.LastTransitionTime = metav1.NewTime(now)
			}
			if h.Status != w.Status || h.Reason != w.Reason {
				changed = append(changed, transition{from: h, to: w})
			}
			merged[i] = w
		}
	}
	return merged, changed
}
