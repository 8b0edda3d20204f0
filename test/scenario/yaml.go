package scenario

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

func unmarshal(text string, into any) error {
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}
