package sim

import (
	"encoding/json"
	"slices"
	"sort"
)

// profile is a flavor profile or a profile of availability zones: what a provider makes of it.
type profile struct {
	ID, Name, Provider, Data string
}

// offer is a flavor or an availability zone, which users choose. A zone is known by its name.
type offer struct {
	ID, Name, Description string
	Enabled               bool
	Profile               string
}

// offers are the flavors, or the availability zones, and how the API calls what belongs to them.
type offers struct {
	profiles, choices         string // collections
	profile, choice           string // JSON roots
	profilesRoot, choicesRoot string
	data, profileID           string // attributes
	profileTitle, choiceTitle string
	madeProfiles              map[string]*profile
	made                      map[string]*offer
}

func newFlavors() *offers {
	return &offers{profiles: "flavorprofiles", choices: "flavors", profile: "flavorprofile", choice: "flavor",
		profilesRoot: "flavorprofiles", choicesRoot: "flavors", data: "flavor_data", profileID: "flavor_profile_id",
		profileTitle: "Flavor Profile", choiceTitle: "Flavor", madeProfiles: map[string]*profile{}, made: map[string]*offer{}}
}

func newZones() *offers {
	return &offers{profiles: "availabilityzoneprofiles", choices: "availabilityzones", profile: "availability_zone_profile", choice: "availability_zone",
		profilesRoot: "availability_zone_profiles", choicesRoot: "availability_zones", data: "availability_zone_data", profileID: "availability_zone_profile_id",
		profileTitle: "Availability Zone Profile", choiceTitle: "Availability Zone", madeProfiles: map[string]*profile{}, made: map[string]*offer{}}
}

func (s *offers) viewProfile(p *profile) object {
	return object{"id": p.ID, "name": p.Name, "provider_name": p.Provider, s.data: p.Data}
}

func (s *offers) view(o *offer) object {
	out := object{"name": o.Name, "description": o.Description, "enabled": o.Enabled, s.profileID: o.Profile}
	if s.choice == "flavor" {
		out["id"] = o.ID
	}
	return out
}

// key is what the path names one by.
func (s *offers) key(o *offer) string {
	if s.choice == "flavor" {
		return o.ID
	}
	return o.Name
}

func (c *Cloud) offerCall(r *request, s *offers) (response, error) {
	if !r.token.admin() && (r.method != "GET" || r.path[0] == s.profiles) {
		return response{}, refuse(403, "Policy does not allow this request to be performed.")
	}
	switch {
	case r.is("GET", s.choices):
		out := []object{}
		for _, o := range s.sorted() {
			if name := r.query.Get("name"); name == "" || name == o.Name {
				out = append(out, s.view(o))
			}
		}
		return response{status: 200, body: object{s.choicesRoot: out, s.choicesRoot + "_links": []any{}}}, nil
	case r.is("POST", s.choices):
		return c.makeOffer(r, s)
	case r.is("POST", s.profiles):
		return c.makeProfile(r, s)
	case r.is("GET", s.choices, "*"), r.is("PUT", s.choices, "*"), r.is("DELETE", s.choices, "*"):
		o := s.made[r.path[1]]
		if o == nil {
			return response{}, notFound(s.choiceTitle, r.path[1])
		}
		switch r.method {
		case "DELETE":
			if c.offerUsed(s, o) {
				return response{}, refuse(409, "%s %s is in use and cannot be deleted.", s.choiceTitle, r.path[1])
			}
			delete(s.made, r.path[1])
			return response{status: 204}, nil
		case "PUT":
			a, err := c.parseObject(r, s.choice+"_", s.choice, fields([]field{{name: "name", typ: str255}, {name: "description", typ: str255}, {name: "enabled", typ: boolType{}}}))
			if err != nil {
				return response{}, err
			}
			if a.set("enabled") {
				o.Enabled = a.flag("enabled")
			}
		}
		return response{status: 200, body: object{s.choice: s.view(o)}}, nil
	case r.is("DELETE", s.profiles, "*"):
		if s.madeProfiles[r.path[1]] == nil {
			return response{}, notFound(s.profileTitle, r.path[1])
		}
		for _, o := range s.made {
			if o.Profile == r.path[1] {
				return response{}, refuse(409, "%s %s is in use and cannot be modified.", s.profileTitle, r.path[1])
			}
		}
		delete(s.madeProfiles, r.path[1])
		return response{status: 204}, nil
	}
	return response{}, refuse(404, "The resource could not be found.")
}

func (s *offers) sorted() []*offer {
	var out []*offer
	for _, o := range s.made {
		out = append(out, o)
	}
	sort.Slice(out, func(i, j int) bool { return s.key(out[i]) < s.key(out[j]) })
	return out
}

func (c *Cloud) offerUsed(s *offers, o *offer) bool {
	for _, lb := range c.lb.lbs {
		used := lb.AvailabilityZone
		if s.choice == "flavor" {
			used = lb.FlavorID
		}
		if used != nil && *used == s.key(o) {
			return true
		}
	}
	return false
}

func (c *Cloud) makeProfile(r *request, s *offers) (response, error) {
	a, err := c.parseObject(r, s.profile+"_", s.profile, fields([]field{{name: "name", typ: str255, mandatory: true},
		{name: "provider_name", typ: str255, mandatory: true}, {name: s.data, typ: stringType{max: 4096}, mandatory: true}}))
	if err != nil {
		return response{}, err
	}
	if !slices.Contains(c.opts.Providers, a.str("provider_name")) {
		return response{}, refuse(400, "Provider '%s' is not enabled.", a.str("provider_name"))
	}
	if !json.Valid([]byte(a.str(s.data))) {
		return response{}, invalidOption(a.str(s.data), s.data)
	}
	p := &profile{ID: c.newID(), Name: a.str("name"), Provider: a.str("provider_name"), Data: a.str(s.data)}
	s.madeProfiles[p.ID] = p
	return response{status: 201, body: object{s.profile: s.viewProfile(p)}}, nil
}

func (c *Cloud) makeOffer(r *request, s *offers) (response, error) {
	a, err := c.parseObject(r, s.choice+"_", s.choice, fields([]field{{name: "name", typ: str255, mandatory: true}, {name: "description", typ: str255},
		{name: "enabled", typ: boolType{}, def: true}, {name: s.profileID, typ: uuidType{}, mandatory: true}}))
	if err != nil {
		return response{}, err
	}
	if s.madeProfiles[a.str(s.profileID)] == nil {
		return response{}, notFound(s.profileTitle, a.str(s.profileID))
	}
	o := &offer{ID: c.newID(), Name: a.str("name"), Description: a.str("description"), Enabled: a.flag("enabled"), Profile: a.str(s.profileID)}
	for _, other := range s.made {
		if other.Name == o.Name {
			return response{}, refuse(409, "A %s of %s already exists.", s.choice, o.Name)
		}
	}
	s.made[s.key(o)] = o
	return response{status: 201, body: object{s.choice: s.view(o)}}, nil
}

// choose checks the flavor and the zone of a new load balancer, and which provider they want.
func (c *Cloud) choose(lb *loadBalancer, a attrs) error {
	provider := a.str("provider")
	if id := a.str("flavor_id"); id != "" {
		f := c.lb.flavors.made[id]
		switch {
		case id == "00000000-0000-0000-0000-000000000000":
			return refuse(400, "The selected flavor is not allowed in this deployment: %s", id)
		case f == nil:
			return invalid("Invalid flavor_id.")
		case !f.Enabled:
			return refuse(400, "The selected flavor is not allowed in this deployment: %s", id)
		}
		wants := c.lb.flavors.madeProfiles[f.Profile].Provider
		if provider != "" && provider != wants {
			return refuse(400, "Flavor '%s' is not compatible with provider '%s'", id, provider)
		}
		provider, lb.FlavorID = wants, &id
	}
	if name := a.str("availability_zone"); name != "" {
		z := c.lb.zones.made[name]
		switch {
		case z == nil:
			return invalid("Invalid availability zone.")
		case !z.Enabled:
			return refuse(400, "The selected availability_zone is not allowed in this deployment: %s", name)
		}
		lb.AvailabilityZone = &name
	}
	if provider != "" {
		if !slices.Contains(c.opts.Providers, provider) {
			return refuse(400, "Provider '%s' is not enabled.", provider)
		}
		lb.Provider = provider
	}
	return nil
}
