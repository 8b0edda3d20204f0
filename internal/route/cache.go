package route

import (
	"sync"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
)

// Cache keeps compiled rules, for whoever evaluates many trees that resemble each other. The zero value is ready; it is
// safe for concurrent use and only ever grows.
type Cache struct {
	mu       sync.Mutex
	matchers map[lb.Rule]*matcher
}

// matcher returns the compiled rule; only successes are kept.
func (c *Cache) matcher(rule lb.Rule) (*matcher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.matchers[rule]; m != nil {
		return m, nil
	}
	m, err := newMatcher(rule)
	if err != nil {
		return nil, err
	}
	if c.matchers == nil {
		c.matchers = map[lb.Rule]*matcher{}
	}
	c.matchers[rule] = m
	return m, nil
}
