package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// withLimit adds to an error about a quota what the limit is, which neither Octavia nor Neutron says. Where the limit cannot be read, the error
// stays as it is.
func (c *Client) withLimit(ctx context.Context, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.quota.resource == "" {
		return err
	}
	var out struct{ Quota map[string]any }
	project := c.session(ctx).projectID
	if c.do(ctx, call{service: e.quota.service, method: http.MethodGet, path: "/quotas/" + element(project), out: &out, op: "read", what: "the quota"}) != nil {
		return err
	}
	for name, value := range out.Quota {
		// Octavia gives strings.
		limit, notANumber := strconv.Atoi(fmt.Sprint(value))
		if quotaKey(name) == e.quota.resource && notANumber == nil && limit >= 0 {
			told := *e
			told.Message = fmt.Sprintf("%s: the limit is %d", e.Message, limit)
			return &told
		}
	}
	return err
}
