package plan

import (
	"strconv"
	"strings"
)

// A new object may need the key of one that still exists: when it replaces that one, or when keys moved on among objects
// that were matched by content. It then gets a suffix, which matching by key ignores.
const keySuffix = "~"

// baseKey takes the suffix off.
func baseKey(key string) string {
	i := strings.LastIndex(key, keySuffix)
	if i < 0 {
		return key
	}
	if _, err := strconv.ParseUint(key[i+1:], 10, 16); err != nil || len(key)-i > 6 {
		return key
	}
	return key[:i]
}

// freeKey finds a key that is not taken, and takes it.
func freeKey(key string, taken map[string]bool) string {
	free := key
	for n := 2; taken[free]; n++ {
		free = baseKey(key) + keySuffix + strconv.Itoa(n)
	}
	taken[free] = true
	return free
}
