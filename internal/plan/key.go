package plan

import (
	"strconv"
	"strings"
)

// A new object may need the key of one that still exists: when it replaces that one, or when keys moved on among objects
// that were matched by content. It then gets a suffix, which matching by key ignores.
// The compiler numbers pools of the same backends with another sign.
const (
	keySuffix   = "~"
	keySuffixes = "~#"
)

// baseKey takes the suffixes off.
func baseKey(key string) string {
	for {
		i := strings.LastIndexAny(key, keySuffixes)
		if i < 0 || i+1 == len(key) || len(key)-i > 6 || strings.Trim(key[i+1:], "0123456789") != "" {
			return key
		}
		key = key[:i]
	}
}

// freeKey finds a key that is not taken, and takes it.
func freeKey(key string, taken map[string]bool) string {
	free := key
	for n := 2; taken[free]; n++ {
		free = key + keySuffix + strconv.Itoa(n)
	}
	taken[free] = true
	return free
}
