package sim

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// viewer is an entity with its form in lists and single reads.
type viewer interface {
	entity
	view() any
}

func values[E viewer](m map[string]E) []viewer {
	out := make([]viewer, 0, len(m))
	for _, e := range m {
		out = append(out, e)
	}
	return out
}

func viewers[E viewer](list []E) []viewer {
	out := make([]viewer, 0, len(list))
	for _, e := range list {
		out = append(out, e)
	}
	return out
}

// asMap is the JSON form of a view, for fields and filters.
func asMap(v any) map[string]any {
	b, err := marshal(v)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		panic(err)
	}
	return m
}

func onlyFields(v any, fields []string) any {
	if fields == nil {
		return v
	}
	out := object{}
	for k, val := range asMap(v) {
		if slices.Contains(fields, k) {
			out[k] = val
		}
	}
	return out
}

func (c *Cloud) show(r *request, root string, e viewer) (response, error) {
	return response{status: 200, body: object{root: onlyFields(e.view(), r.query["fields"])}}, nil
}

// Attributes besides those of the view by which objects can be filtered, and
// those of the view by which they cannot.
var (
	moreFilters = map[string][]string{
		"listener":      {"loadbalancer_id"},
		"pool":          {"loadbalancer_id"},
		"member":        {"pool_id"},
		"healthmonitor": {"pool_id"},
		"rule":          {"l7policy_id"},
	}
	noFilters = []string{"listeners", "pools", "members", "rules", "l7policies", "loadbalancers", "tenant_id",
		"healthmonitor_id", "sni_container_refs", "vip_sg_ids", "additional_vips", "session_persistence", "insert_headers", "tags"}
	auxiliary = []string{"limit", "marker", "sort", "sort_key", "sort_dir", "fields", "page_reverse"}
)

// parentOf is the id behind a filter that is not in the view.
func parentOf(e entity) string {
	switch x := e.(type) {
	case *listener:
		return x.lb.ID
	case *pool:
		return x.lb.ID
	case *member:
		return x.pool.ID
	case *monitor:
		return x.pool.ID
	case *rule:
		return x.policy.ID
	}
	return ""
}

func splitTags(vals []string) []string {
	var out []string
	for _, v := range vals {
		out = append(out, strings.Split(v, ",")...)
	}
	return out
}

func (c *Cloud) list(r *request, plural, kind string, all []viewer) (response, error) {
	var items []viewer
	for _, e := range all {
		if p := r.query.Get("project_id"); r.sees(e) && (p == "" || p == e.base().ProjectID) {
			items = append(items, e)
		}
	}
	items, err := c.filter(r.query, kind, items)
	if err != nil {
		return response{}, err
	}
	sorted, err := sortViewers(r.query, items)
	if err != nil {
		return response{}, err
	}
	page, links, err := c.page(r, kind, sorted)
	if err != nil {
		return response{}, err
	}
	out := make([]any, 0, len(page))
	for _, e := range page {
		out = append(out, onlyFields(e.view(), r.query["fields"]))
	}
	return response{status: 200, body: object{plural: out, plural + "_links": links}}, nil
}

func (c *Cloud) filter(q url.Values, kind string, items []viewer) ([]viewer, error) {
	known := map[string]bool{}
	for _, n := range attributeNames[kind] {
		known[n] = !slices.Contains(noFilters, n)
	}
	for _, n := range moreFilters[kind] {
		known[n] = true
	}
	filters := map[string]string{}
	for name, vals := range q {
		switch {
		case slices.Contains(auxiliary, name) || name == "project_id":
		case name == "tags" || name == "tags-any" || name == "not-tags" || name == "not-tags-any":
		case !known[name] || len(vals) != 1:
			return nil, refuse(400, "One or more arguments are either duplicate or invalid")
		default:
			filters[name] = vals[0]
		}
	}
	var out []viewer
	for _, e := range items {
		if matchesTags(q, e.base().Tags) && matchesFilters(e, filters) {
			out = append(out, e)
		}
	}
	return out, nil
}

func matchesTags(q url.Values, tags []string) bool {
	all := func(want []string) bool {
		return !slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(tags, w) })
	}
	some := func(want []string) bool {
		return slices.ContainsFunc(want, func(w string) bool { return slices.Contains(tags, w) })
	}
	return (!q.Has("tags") || all(splitTags(q["tags"]))) &&
		(!q.Has("tags-any") || some(splitTags(q["tags-any"]))) &&
		(!q.Has("not-tags") || !all(splitTags(q["not-tags"]))) &&
		(!q.Has("not-tags-any") || !some(splitTags(q["not-tags-any"])))
}

func matchesFilters(e viewer, filters map[string]string) bool {
	if id, ok := filters["id"]; ok && e.base().ID != id {
		return false
	}
	var m map[string]any
	for name, want := range filters {
		if name == "id" {
			continue
		}
		if id := parentOf(e); slices.Contains(moreFilters[e.kind()], name) {
			if id != want {
				return false
			}
			continue
		}
		if m == nil {
			m = asMap(e.view())
		}
		switch have := m[name].(type) {
		case bool:
			if have != pyBool(want) {
				return false
			}
		case nil:
			return false
		case float64:
			if n, err := strconv.ParseFloat(want, 64); err != nil || n != have {
				return false
			}
		default:
			// A text that was never set is null, and the usual database
			// collation ignores case.
			if have == "" || !strings.EqualFold(fmt.Sprint(have), want) {
				return false
			}
		}
	}
	return true
}

func sortViewers(q url.Values, items []viewer) ([]viewer, error) {
	type key struct {
		name string
		desc bool
	}
	var keys []key
	add := func(name, dir string) error {
		switch strings.ToLower(dir) {
		case "", "asc", "desc":
		default:
			return refuse(400, "Supplied sort direction '%s' is not valid.", dir)
		}
		keys = append(keys, key{name, strings.ToLower(dir) == "desc"})
		return nil
	}
	if s := q.Get("sort"); s != "" {
		for _, part := range strings.Split(s, ",") {
			name, dir, _ := strings.Cut(part, ":")
			if err := add(name, dir); err != nil {
				return nil, err
			}
		}
	} else if s := q.Get("sort_key"); s != "" {
		dirs := strings.Split(q.Get("sort_dir"), ",")
		for i, name := range strings.Split(s, ",") {
			dir := ""
			if i < len(dirs) {
				dir = dirs[i]
			}
			if err := add(name, dir); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range []string{"created_at", "id"} {
		if !slices.ContainsFunc(keys, func(k key) bool { return k.name == name }) {
			keys = append(keys, key{name: name})
		}
	}
	type row struct {
		e    viewer
		vals []string
	}
	rows := make([]row, 0, len(items))
	for _, e := range items {
		b := e.base()
		vals := make([]string, len(keys))
		var m map[string]any
		for i, k := range keys {
			switch k.name {
			case "created_at":
				vals[i] = string(b.CreatedAt)
			case "id":
				vals[i] = b.ID
			default:
				if m == nil {
					m = asMap(e.view())
				}
				v, ok := m[k.name]
				if !ok {
					return nil, refuse(400, "Supplied sort key '%s' is not valid.", k.name)
				}
				if n, isNum := v.(float64); isNum {
					v = fmt.Sprintf("%020.3f", n)
				}
				vals[i] = strings.ToLower(fmt.Sprint(v))
			}
		}
		rows = append(rows, row{e, vals})
	}
	sort.Slice(rows, func(i, j int) bool {
		for k, key := range keys {
			if a, b := rows[i].vals[k], rows[j].vals[k]; a != b {
				return (a < b) != key.desc
			}
		}
		return false
	})
	out := make([]viewer, len(rows))
	for i := range rows {
		out[i] = rows[i].e
	}
	return out, nil
}

// page cuts a list. Its links are made of limit, sort and marker alone: who
// follows a next link loses the filters.
func (c *Cloud) page(r *request, kind string, items []viewer) ([]viewer, []object, error) {
	limit := c.opts.PageLimit
	if s := r.query.Get("limit"); s != "" && s != "infinite" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, nil, refuse(400, "Supplied pagination limit '%s' is not valid.", s)
		}
		if n > 0 {
			limit = min(n, limit)
		}
	}
	marker := r.query.Get("marker")
	if marker != "" {
		i := slices.IndexFunc(items, func(e viewer) bool { return e.base().ID == marker })
		if i < 0 {
			e, ok := c.entity(marker).(viewer)
			if !ok || e.kind() != kind {
				return nil, nil, refuse(400, "Supplied pagination marker '%s' is not valid.", marker)
			}
			// A marker that the filter hides still has its place in the order.
			withMarker, err := sortViewers(r.query, append(slices.Clone(items), e))
			if err != nil {
				return nil, nil, err
			}
			items = withMarker
			i = slices.IndexFunc(items, func(e viewer) bool { return e.base().ID == marker })
		}
		if pyBool(r.query.Get("page_reverse")) {
			items = items[:i]
		} else {
			items = items[i+1:]
		}
	}
	if len(items) > limit {
		items = items[:limit]
	}
	links := []object{}
	if len(items) > 0 {
		link := func(rel, marker, more string) {
			params := []string{"limit=" + itoa(limit)}
			for _, k := range []string{"sort", "sort_key"} {
				if v := r.query.Get(k); v != "" {
					params = append(params, k+"="+v)
				}
			}
			params = append(params, "marker="+marker)
			href := r.base + "/load-balancer/v2.0/lbaas/" + strings.Join(r.path, "/") + "?" + strings.Join(params, "&") + more
			links = append(links, object{"rel": rel, "href": href})
		}
		if marker != "" {
			link("previous", items[0].base().ID, "&page_reverse=True")
		}
		if len(items) >= limit {
			link("next", items[len(items)-1].base().ID, "")
		}
	}
	return items, links, nil
}

// attributeNames are the names in the view of each kind.
var attributeNames = map[string][]string{
	"loadbalancer":  viewNames((&loadBalancer{}).view()),
	"listener":      viewNames((&listener{lb: &loadBalancer{}}).view()),
	"pool":          viewNames((&pool{lb: &loadBalancer{}}).view()),
	"member":        viewNames((&member{}).view()),
	"healthmonitor": viewNames((&monitor{pool: &pool{}}).view()),
	"l7policy":      viewNames((&policy{}).view()),
	"rule":          viewNames((&rule{}).view()),
}

func viewNames(v any) []string {
	var out []string
	for k := range asMap(v) {
		out = append(out, k)
	}
	return out
}
