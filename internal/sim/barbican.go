package sim

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"software.sslmate.com/src/go-pkcs12"
)

type barbicanState struct {
	secrets    map[string]*secret
	containers map[string]*container
	next       int
}

type consumer struct {
	Name string `json:"name"`
	URL  string `json:"URL"`
}

// acl is who may read. A project-wide grant is the default.
type acl struct {
	Users         []string `json:"users"`
	ProjectAccess bool     `json:"project-access"`
	Created       string   `json:"created,omitempty"`
	Updated       string   `json:"updated,omitempty"`
}

type secret struct {
	id, project, creator string
	order                int
	name                 string
	secretType           string
	algorithm, mode      *string
	bitLength            *int
	expiration           *string
	created, updated     string
	payload              []byte
	contentType          string
	metadata             map[string]string
	acl                  *acl
	consumers            []consumer
}

type containerRef struct {
	Name      string `json:"name"`
	SecretRef string `json:"secret_ref"`
}

type container struct {
	id, project, creator string
	order                int
	name, kind           string
	refs                 []containerRef
	created, updated     string
	acl                  *acl
	consumers            []consumer
}

func barbicanError(e *apiError) any {
	title := map[int]string{400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
		406: "Not Acceptable", 409: "Conflict", 413: "Request Entity Too Large", 415: "Unsupported Media Type"}[e.status]
	if title == "" {
		title = "Internal Server Error"
	}
	return object{"code": e.status, "title": title, "description": e.message}
}

const (
	secretNotFound    = "Secret not found."
	containerNotFound = "Container not found."
	maxSecretBytes    = 20000
	maxRequestBytes   = 25000
)

func (c *Cloud) barbican(r *request) (response, error) {
	if len(r.path) == 0 {
		return response{status: 300, body: object{"versions": object{"values": []object{{"id": "v1", "status": "stable",
			"links": []object{{"rel": "self", "href": r.base + "/key-manager/v1/"}}}}}}}, nil
	}
	switch r.path[0] {
	case "secrets":
		return c.secretCall(r)
	case "containers":
		return c.containerCall(r)
	}
	return response{}, refuse(404, "Not Found. Sorry but your container is in another castle.")
}

func (c *Cloud) secretRef(id string) string { return c.url + "/key-manager/v1/secrets/" + id }

func (c *Cloud) containerRef(id string) string { return c.url + "/key-manager/v1/containers/" + id }

func (c *Cloud) barbicanNow() string { return c.clock.Now().UTC().Format("2006-01-02T15:04:05") }

func (c *Cloud) secretView(s *secret) object {
	out := object{"secret_ref": c.secretRef(s.id), "name": s.name, "secret_type": s.secretType, "status": "ACTIVE",
		"created": s.created, "updated": s.updated, "creator_id": s.creator, "algorithm": s.algorithm, "mode": s.mode,
		"bit_length": s.bitLength, "expiration": s.expiration}
	if s.name == "" {
		out["name"] = nil
	}
	if s.payload != nil {
		out["content_types"] = object{"default": s.contentType}
	}
	return out
}

func (c *Cloud) secretCall(r *request) (response, error) {
	switch {
	case r.is("GET", "secrets"):
		return c.listSecrets(r)
	case r.is("POST", "secrets"):
		return c.createSecret(r)
	case len(r.path) < 2:
		return response{}, refuse(405, "Method Not Allowed")
	}
	s := c.keys.secrets[r.path[1]]
	if s == nil {
		return response{}, refuse(404, secretNotFound)
	}
	if !c.mayRead(r.token, s.project, s.creator, s.acl) {
		return response{}, refuse(403, "Forbidden")
	}
	switch {
	case r.is("GET", "secrets", "*"):
		if accept := r.header.Get("Accept"); accept != "" && !strings.Contains(accept, "json") && !strings.Contains(accept, "*/*") {
			return payloadResponse(s)
		}
		return response{status: 200, body: c.secretView(s)}, nil
	case r.is("GET", "secrets", "*", "payload"):
		return payloadResponse(s)
	case r.is("PUT", "secrets", "*"):
		if s.payload != nil {
			return response{}, refuse(409, "Secret already has data, cannot modify it.")
		}
		s.contentType = r.header.Get("Content-Type")
		s.payload = slices.Clone(r.body)
		if r.header.Get("Content-Encoding") == "base64" {
			s.payload = lenientBase64(string(r.body))
		}
		s.updated = c.barbicanNow()
		return response{status: 204}, nil
	case r.is("DELETE", "secrets", "*"):
		delete(c.keys.secrets, s.id)
		return response{status: 204}, nil
	case len(r.path) >= 3 && r.path[2] == "metadata":
		return c.metadataCall(r, s)
	case r.path[len(r.path)-1] == "acl" && len(r.path) == 3:
		return c.aclCall(r, &s.acl, c.secretRef(s.id))
	case r.path[len(r.path)-1] == "consumers" && len(r.path) == 3:
		return consumerCall(r, &s.consumers, func() any { return c.secretView(s) })
	}
	return response{}, refuse(404, "Not Found.")
}

func payloadResponse(s *secret) (response, error) {
	if s.payload == nil {
		return response{}, refuse(404, "Not Found. Sorry but your secret has no payload.")
	}
	return response{status: 200, raw: s.payload, contentType: s.contentType}, nil
}

// mayRead applies the ACL. The service user of Octavia reads what it was
// granted, everybody else what the project owns.
func (c *Cloud) mayRead(t *token, project, creator string, a *acl) bool {
	if t.admin() && project == t.projectID {
		return true
	}
	if a == nil || a.ProjectAccess {
		if t.projectID == project {
			return true
		}
	}
	return t.userID == creator || a != nil && slices.Contains(a.Users, t.userID)
}

func (c *Cloud) createSecret(r *request) (response, error) {
	var in struct {
		Name            string  `json:"name"`
		Payload         *string `json:"payload"`
		ContentType     string  `json:"payload_content_type"`
		ContentEncoding string  `json:"payload_content_encoding"`
		Algorithm       *string `json:"algorithm"`
		BitLength       *int    `json:"bit_length"`
		Mode            *string `json:"mode"`
		SecretType      string  `json:"secret_type"`
		Expiration      *string `json:"expiration"`
	}
	// A body beyond its limit is cut off, and then it is no JSON any more.
	if err := json.Unmarshal(r.body, &in); err != nil || len(r.body) > maxRequestBytes {
		return response{}, refuse(400, "Malformed JSON")
	}
	if len(in.Name) > 255 {
		return response{}, refuse(400, "Provided object does not match schema 'Secret': '%s' is too long. Invalid property: 'name'", in.Name)
	}
	if in.SecretType == "" {
		in.SecretType = "opaque"
	}
	if !slices.Contains([]string{"opaque", "certificate", "passphrase", "private", "public", "symmetric"}, in.SecretType) {
		return response{}, refuse(400, "Provided object does not match schema 'Secret': '%s' is not one of ['opaque', 'symmetric', 'public', 'private', 'certificate', 'passphrase']. Invalid property: 'secret_type'", in.SecretType)
	}
	s := &secret{id: c.newID(), project: r.token.projectID, creator: r.token.userID, name: in.Name, secretType: in.SecretType,
		algorithm: in.Algorithm, bitLength: in.BitLength, mode: in.Mode, expiration: in.Expiration,
		created: c.barbicanNow(), metadata: map[string]string{}}
	s.updated = s.created
	if in.Payload != nil {
		if *in.Payload == "" {
			return response{}, refuse(400, "Provided object does not match schema 'Secret': If 'payload' specified, must be non empty. Invalid property: 'payload'")
		}
		if in.ContentType == "" {
			return response{}, refuse(400, "Provided object does not match schema 'Secret': If 'payload' is supplied, 'payload_content_type' must also be supplied.. Invalid property: 'payload_content_type'")
		}
		s.contentType, s.payload = in.ContentType, []byte(*in.Payload)
		if in.ContentEncoding == "base64" {
			s.payload = lenientBase64(*in.Payload)
		} else if in.ContentType == "application/octet-stream" && in.ContentEncoding != "binary" {
			return response{}, refuse(400, "Provided object does not match schema 'Secret': payload_content_encoding is not one of ['base64', 'binary']. Invalid property: 'payload_content_encoding'")
		}
		if len(s.payload) > maxSecretBytes {
			return response{}, refuse(413, "Provided information too large to process")
		}
	}
	c.keys.next++
	s.order = c.keys.next
	c.keys.secrets[s.id] = s
	return response{status: 201, body: object{"secret_ref": c.secretRef(s.id)}}, nil
}

// lenientBase64 decodes like Python does by default: what is not in the
// alphabet is skipped.
func lenientBase64(s string) []byte {
	keep := strings.Map(func(r rune) rune {
		if r < 128 && strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", r) {
			return r
		}
		return -1
	}, s)
	b, err := base64.RawStdEncoding.DecodeString(keep)
	if err != nil {
		return []byte{}
	}
	return b
}

// pageOf cuts a Barbican list and makes its links.
func pageOf[T any](r *request, self string, all []T) ([]T, object) {
	limit, offset := 10, 0
	if n, err := strconv.Atoi(r.query.Get("limit")); err == nil && n > 0 {
		limit = min(n, 100)
	}
	if n, err := strconv.Atoi(r.query.Get("offset")); err == nil && n > 0 {
		offset = n
	}
	body := object{"total": len(all)}
	from, to := min(offset, len(all)), min(offset+limit, len(all))
	link := func(offset int) string { return fmt.Sprintf("%s?limit=%d&offset=%d", self, limit, offset) }
	if to < len(all) {
		body["next"] = link(offset + limit)
	}
	if offset > 0 {
		body["previous"] = link(max(offset-limit, 0))
	}
	return all[from:to], body
}

// like is SQL's LIKE, which Barbican hands filters to: "%" is anything, "_" any
// character, and upper and lower case are the same.
func like(pattern, text string) bool {
	expr := regexp.QuoteMeta(pattern)
	expr = strings.NewReplacer("%", ".*", "_", ".").Replace(expr)
	ok, err := regexp.MatchString("(?is)^"+expr+"$", text)
	return err == nil && ok
}

func (c *Cloud) listSecrets(r *request) (response, error) {
	var all []*secret
	for _, s := range c.keys.secrets {
		if s.project != r.token.projectID {
			continue
		}
		if n := r.query.Get("name"); n != "" && !like(n, s.name) {
			continue
		}
		if t := r.query.Get("secret_type"); t != "" && t != s.secretType {
			continue
		}
		if a := r.query.Get("alg"); a != "" && (s.algorithm == nil || *s.algorithm != a) {
			continue
		}
		all = append(all, s)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].order < all[j].order })
	page, body := pageOf(r, r.base+"/key-manager/v1/secrets", all)
	out := []object{}
	for _, s := range page {
		out = append(out, c.secretView(s))
	}
	body["secrets"] = out
	return response{status: 200, body: body}, nil
}

func (c *Cloud) metadataCall(r *request, s *secret) (response, error) {
	var in struct {
		Metadata   map[string]string `json:"metadata"`
		Key, Value string
	}
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &in); err != nil {
			return response{}, refuse(400, "The request body is not valid JSON.")
		}
	}
	self := c.secretRef(s.id) + "/metadata"
	if len(r.path) == 3 {
		switch r.method {
		case "GET":
			return response{status: 200, body: object{"metadata": s.metadata}}, nil
		case "PUT":
			s.metadata = map[string]string{}
			for k, v := range in.Metadata {
				s.metadata[strings.ToLower(k)] = v
			}
			return response{status: 201, body: object{"metadata_ref": self}}, nil
		case "POST":
			key := strings.ToLower(in.Key)
			if _, ok := s.metadata[key]; ok {
				return response{}, refuse(409, "Conflict. Key in request is already in the secret metadata")
			}
			s.metadata[key] = in.Value
			return response{status: 201, body: object{"metadata_ref": self + "/" + key, "key": key, "value": in.Value}}, nil
		}
		return response{}, refuse(405, "Method Not Allowed")
	}
	key := r.path[3]
	if _, ok := s.metadata[key]; !ok {
		return response{}, refuse(404, "Secret metadata not found.")
	}
	switch r.method {
	case "GET":
		return response{status: 200, body: object{"key": key, "value": s.metadata[key]}}, nil
	case "PUT":
		s.metadata[key] = in.Value
		return response{status: 200, body: object{"key": key, "value": in.Value}}, nil
	case "DELETE":
		delete(s.metadata, key)
		return response{status: 204}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

func (c *Cloud) aclCall(r *request, a **acl, self string) (response, error) {
	switch r.method {
	case "GET":
		if *a == nil {
			return response{status: 200, body: object{"read": object{"project-access": true}}}, nil
		}
		return response{status: 200, body: object{"read": *a}}, nil
	case "PUT", "PATCH":
		var in struct {
			Read struct {
				Users         *[]string `json:"users"`
				ProjectAccess *bool     `json:"project-access"`
			} `json:"read"`
		}
		if err := json.Unmarshal(r.body, &in); err != nil {
			return response{}, refuse(400, "The request body is not valid JSON.")
		}
		next := acl{ProjectAccess: true, Users: []string{}, Created: c.barbicanNow()}
		if *a != nil {
			next.Created = (*a).Created
			if r.method == "PATCH" {
				next = **a
			}
		}
		next.Updated = c.barbicanNow()
		if in.Read.Users != nil {
			next.Users = slices.Clone(*in.Read.Users)
		}
		if in.Read.ProjectAccess != nil {
			next.ProjectAccess = *in.Read.ProjectAccess
		}
		*a = &next
		return response{status: 200, body: object{"acl_ref": self + "/acl"}}, nil
	case "DELETE":
		*a = nil
		return response{status: 200}, nil
	}
	return response{}, refuse(405, "Method Not Allowed")
}

func consumerCall(r *request, list *[]consumer, view func() any) (response, error) {
	if r.method == "GET" {
		page, body := pageOf(r, r.base+"/key-manager/v1/"+strings.Join(r.path, "/"), *list)
		body["consumers"] = append([]consumer{}, page...)
		return response{status: 200, body: body}, nil
	}
	// Secrets take consumers of any of three fields, containers name and URL.
	var in consumer
	if err := json.Unmarshal(r.body, &in); err != nil || in.Name == "" && r.path[0] == "containers" {
		return response{}, refuse(400, "Provided object does not match schema 'Consumer'")
	}
	switch r.method {
	case "POST":
		if !slices.Contains(*list, in) {
			*list = append(*list, in)
		}
	case "DELETE":
		if !slices.Contains(*list, in) {
			return response{}, refuse(404, "Consumer not found.")
		}
		*list = removeFrom(*list, in)
	default:
		return response{}, refuse(405, "Method Not Allowed")
	}
	return response{status: 200, body: view()}, nil
}

func (c *Cloud) containerView(k *container) object {
	out := object{"container_ref": c.containerRef(k.id), "name": k.name, "type": k.kind, "status": "ACTIVE", "creator_id": k.creator,
		"secret_refs": append([]containerRef{}, k.refs...), "created": k.created, "updated": k.updated, "consumers": append([]consumer{}, k.consumers...)}
	if k.name == "" {
		out["name"] = nil
	}
	return out
}

func (c *Cloud) containerCall(r *request) (response, error) {
	switch {
	case r.is("GET", "containers"):
		var all []*container
		for _, k := range c.keys.containers {
			if k.project == r.token.projectID && (r.query.Get("name") == "" || r.query.Get("name") == k.name) {
				all = append(all, k)
			}
		}
		sort.Slice(all, func(i, j int) bool { return all[i].order < all[j].order })
		page, body := pageOf(r, r.base+"/key-manager/v1/containers", all)
		out := []object{}
		for _, k := range page {
			out = append(out, c.containerView(k))
		}
		body["containers"] = out
		return response{status: 200, body: body}, nil
	case r.is("POST", "containers"):
		return c.createContainer(r)
	case len(r.path) < 2:
		return response{}, refuse(405, "Method Not Allowed")
	}
	k := c.keys.containers[r.path[1]]
	if k == nil {
		return response{}, refuse(404, containerNotFound)
	}
	if !c.mayRead(r.token, k.project, k.creator, k.acl) {
		return response{}, refuse(403, "Forbidden")
	}
	switch {
	case r.is("GET", "containers", "*"):
		return response{status: 200, body: c.containerView(k)}, nil
	case r.is("DELETE", "containers", "*"):
		delete(c.keys.containers, k.id)
		return response{status: 204}, nil
	case len(r.path) == 3 && r.path[2] == "acl":
		return c.aclCall(r, &k.acl, c.containerRef(k.id))
	case len(r.path) == 3 && r.path[2] == "consumers":
		return consumerCall(r, &k.consumers, func() any { return c.containerView(k) })
	}
	return response{}, refuse(404, "Not Found.")
}

func (c *Cloud) createContainer(r *request) (response, error) {
	var in struct {
		Name       string         `json:"name"`
		Type       string         `json:"type"`
		SecretRefs []containerRef `json:"secret_refs"`
	}
	if err := json.Unmarshal(r.body, &in); err != nil {
		return response{}, refuse(400, "The request body is not valid JSON.")
	}
	if !slices.Contains([]string{"generic", "rsa", "certificate"}, in.Type) {
		return response{}, refuse(400, "Provided object does not match schema 'Container': '%s' is not one of ['generic', 'rsa', 'certificate']. Invalid property: 'type'", in.Type)
	}
	seen := map[string]bool{}
	for _, ref := range in.SecretRefs {
		if c.secretByRef(ref.SecretRef) == nil {
			return response{}, refuse(404, secretNotFound)
		}
		if seen[ref.SecretRef] {
			return response{}, refuse(400, "Provided object does not match schema 'Container': Duplicate secret_ref(s) are not allowed. Invalid property: 'secret_refs'")
		}
		seen[ref.SecretRef] = true
	}
	k := &container{id: c.newID(), project: r.token.projectID, creator: r.token.userID, name: in.Name, kind: in.Type, refs: in.SecretRefs, created: c.barbicanNow()}
	k.updated = k.created
	c.keys.next++
	k.order = c.keys.next
	c.keys.containers[k.id] = k
	return response{status: 201, body: object{"container_ref": c.containerRef(k.id)}}, nil
}

// secretByRef finds a secret by its full reference.
func (c *Cloud) secretByRef(ref string) *secret {
	i := strings.LastIndex(ref, "/secrets/")
	if i < 0 {
		return nil
	}
	return c.keys.secrets[strings.Trim(ref[i+len("/secrets/"):], "/")]
}

func (c *Cloud) containerByRef(ref string) *container {
	i := strings.LastIndex(ref, "/containers/")
	if i < 0 {
		return nil
	}
	return c.keys.containers[strings.Trim(ref[i+len("/containers/"):], "/")]
}

// grantOctavia is what Octavia does with the caller's token before it reads.
func (c *Cloud) grantOctavia(a **acl) {
	if *a == nil {
		*a = &acl{ProjectAccess: true, Created: c.barbicanNow()}
	}
	if !slices.Contains((*a).Users, c.lb.service) {
		(*a).Users = append((*a).Users, c.lb.service)
		(*a).Updated = c.barbicanNow()
	}
}

// certificate is what a TLS reference leads to.
type certificate struct {
	key   any
	chain []*x509.Certificate // leaf first
}

func certError(refs []string) error {
	return refuse(400, "Could not retrieve certificate: %s", pyRepr(refs))
}

func (c *Cloud) loadCertificate(ref string) (*certificate, error) {
	if s := c.secretByRef(ref); s != nil {
		c.grantOctavia(&s.acl)
		if s.payload == nil {
			return nil, certError([]string{ref})
		}
		key, leaf, more, err := pkcs12.DecodeChain(s.payload, "")
		if err == nil && slices.ContainsFunc(leaf.DNSNames, func(n string) bool { return slices.Contains(c.opts.UnreadableNames, n) }) {
			err = errors.New("error parsing asn1 value")
		}
		if err != nil {
			return nil, refuse(400, "The PKCS12 bundle is unreadable. Please check the PKCS12 bundle validity. In addition, make sure it does not require a pass phrase. Error: %v", err)
		}
		return &certificate{key, append([]*x509.Certificate{leaf}, more...)}, nil
	}
	k := c.containerByRef(ref)
	if k == nil || k.kind != "certificate" {
		return nil, certError([]string{ref})
	}
	c.grantOctavia(&k.acl)
	cert := &certificate{}
	for _, name := range []string{"certificate", "intermediates", "private_key"} {
		i := slices.IndexFunc(k.refs, func(r containerRef) bool { return r.Name == name })
		if i < 0 {
			if name == "intermediates" {
				continue
			}
			return nil, certError([]string{ref})
		}
		s := c.secretByRef(k.refs[i].SecretRef)
		if s == nil {
			return nil, certError([]string{ref})
		}
		c.grantOctavia(&s.acl)
		if name == "private_key" {
			key, err := parseKey(s.payload)
			if err != nil {
				return nil, certError([]string{ref})
			}
			cert.key = key
			continue
		}
		certs, err := parseCerts(s.payload)
		if err != nil {
			return nil, certError([]string{ref})
		}
		cert.chain = append(cert.chain, certs...)
	}
	return cert, nil
}

// checkCertificates is the check of TLS references when a listener or a pool
// is written.
func (c *Cloud) checkCertificates(refs []string) error {
	var bad []string
	for _, ref := range refs {
		cert, err := c.loadCertificate(ref)
		if err != nil {
			if strings.HasPrefix(err.Error(), "The PKCS12") {
				return err
			}
			bad = append(bad, ref)
			continue
		}
		if leaf := cert.chain[0]; leaf.Subject.CommonName == "" && len(leaf.DNSNames) == 0 {
			return refuse(400, "No CN or DNSName(s) found in certificate. The certificate is invalid.")
		}
	}
	if len(bad) > 0 {
		return certError(bad)
	}
	return nil
}

func (c *Cloud) checkCA(ref string) error {
	if ref == "" {
		return nil
	}
	s := c.secretByRef(ref)
	if s == nil || s.payload == nil {
		return certError([]string{ref})
	}
	c.grantOctavia(&s.acl)
	if _, err := parseCerts(s.payload); err != nil {
		return invalid("The client authentication CA certificate is invalid. It must be a valid x509 PEM format certificate. Error: %v", err)
	}
	return nil
}

var errNoPEM = errors.New("unable to load PEM file")

func parseCerts(b []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, errNoPEM
	}
	return out, nil
}

func parseKey(b []byte) (any, error) {
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("no PEM block")
	}
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k, nil
	}
	return x509.ParseECPrivateKey(block.Bytes)
}
