package sim

import (
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// compiledPolicy is a policy as HAProxy would run it.
type compiledPolicy struct {
	id     string
	rules  []matcher
	always bool // the if clause was lost in a comment

	code     int
	location string // REDIRECT_TO_URL
	prefix   string // REDIRECT_PREFIX
	pool     *backend
}

type matcher func(*http.Request) bool

func (p *compiledPolicy) matches(r *http.Request) bool {
	if p.always {
		return true
	}
	for _, m := range p.rules {
		if !m(r) {
			return false
		}
	}
	return true
}

// rendered is a value after its way through the template and the configuration
// parser: HTML-escaped, and cut where a comment begins. commented tells whether
// it was cut, which takes the rest of the line away too.
func rendered(value string) (effective string, commented bool) {
	value = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(value)
	effective, _, commented = strings.Cut(value, "#")
	return effective, commented
}

// compileFrontend makes the configuration of a listener. An error is one that
// HAProxy would refuse to start with.
func (c *Cloud) compileFrontend(l *listener) (*frontend, error) {
	fe := &frontend{id: l.ID, port: l.ProtocolPort, protocol: l.Protocol, headers: map[string]bool{}, timeout: 50 * time.Second}
	if l.TimeoutMemberData > 0 {
		fe.timeout = time.Duration(l.TimeoutMemberData) * time.Millisecond
	}
	for _, cidr := range l.AllowedCIDRs {
		fe.allowed = append(fe.allowed, mustPrefix(cidr))
	}
	for name, v := range l.InsertHeaders {
		fe.headers[name] = strings.EqualFold(v, "true")
	}
	pools := map[string]*backend{}
	for _, p := range l.pools() {
		if p.ProvisioningStatus != pendingDelete {
			be, err := c.compileBackend(p, fe.timeout)
			if err != nil {
				return nil, err
			}
			pools[p.ID] = be
		}
	}
	if l.DefaultPoolID != nil {
		if be := pools[*l.DefaultPoolID]; be != nil && be.enabled {
			fe.defaultPool = be
		}
	}
	if !fe.http() {
		return fe, nil
	}
	if l.Protocol == "TERMINATED_HTTPS" {
		if err := c.compileTLS(l, fe); err != nil {
			return nil, err
		}
	}
	for _, p := range l.policies {
		if !p.effective() || p.ProvisioningStatus == pendingDelete {
			continue
		}
		cp := &compiledPolicy{id: p.ID, code: http.StatusFound}
		if p.RedirectHTTPCode != nil {
			cp.code = *p.RedirectHTTPCode
		}
		for _, ru := range p.rules {
			if !ru.AdminStateUp || ru.ProvisioningStatus == pendingDelete {
				continue
			}
			m, err := compileRule(ru)
			if err != nil {
				return nil, fmt.Errorf("rule %s: %w", ru.ID, err)
			}
			cp.rules = append(cp.rules, m)
		}
		switch p.Action {
		case "REJECT":
			fe.rejects = append(fe.rejects, cp)
		case "REDIRECT_TO_URL":
			cp.location, cp.always = rendered(*p.RedirectURL)
			fe.redirects = append(fe.redirects, cp)
		case "REDIRECT_PREFIX":
			cp.prefix, cp.always = rendered(*p.RedirectPrefix)
			fe.redirects = append(fe.redirects, cp)
		case "REDIRECT_TO_POOL":
			if cp.pool = pools[*p.RedirectPoolID]; cp.pool != nil && cp.pool.enabled {
				fe.forwards = append(fe.forwards, cp)
			}
		}
	}
	return fe, nil
}

// flags of a value.
const (
	noFlag = iota
	knownFlag
	badFlag
)

// flagged tells what HAProxy makes of a value that may begin with a dash.
func flagged(typ, value string) int {
	value, _ = rendered(value)
	if !strings.HasPrefix(value, "-") || strings.HasPrefix(typ, "SSL_") {
		return noFlag
	}
	switch value {
	case "-i", "-n", "-u", "-M", "--":
		return knownFlag
	}
	return badFlag
}

func compileRule(ru *rule) (matcher, error) {
	value, _ := rendered(ru.Value)
	switch flagged(ru.Type, ru.Value) {
	case knownFlag:
		// The flag is taken, no pattern is left.
		return inverted(ru, func(*http.Request) bool { return false }), nil
	case badFlag:
		return nil, fmt.Errorf("value %q looks like a flag", value)
	}
	fold := ru.Type == "HOST_NAME"
	test, err := comparison(ru.CompareType, value, fold)
	if err != nil {
		return nil, err
	}
	some := func(list []string) bool {
		for _, s := range list {
			if test(s) {
				return true
			}
		}
		return false
	}
	key := ""
	if ru.Key != nil {
		key = *ru.Key
	}
	var m matcher
	switch ru.Type {
	case "HOST_NAME":
		m = func(r *http.Request) bool { return some(elements([]string{r.Host})) }
	case "PATH":
		m = func(r *http.Request) bool {
			p := rawPath(r)
			return p != "" && test(p)
		}
	case "FILE_TYPE":
		m = func(r *http.Request) bool {
			p := rawPath(r)
			if ru.CompareType == "EQUAL_TO" {
				return p != "" && strings.HasSuffix(p, value)
			}
			return p != "" && test(p)
		}
	case "HEADER":
		m = func(r *http.Request) bool {
			if strings.EqualFold(key, "host") {
				return some(elements([]string{r.Host}))
			}
			return some(elements(r.Header.Values(key)))
		}
	case "COOKIE":
		m = func(r *http.Request) bool {
			for _, line := range r.Header.Values("Cookie") {
				for _, part := range strings.Split(line, ";") {
					name, v, ok := strings.Cut(strings.TrimSpace(part), "=")
					if ok && name == key && test(v) {
						return true
					}
				}
			}
			return false
		}
	case "SSL_CONN_HAS_CERT":
		m = func(r *http.Request) bool { return peer(r) != nil }
	case "SSL_VERIFY_RESULT":
		m = func(r *http.Request) bool { return r.TLS != nil && value == "0" }
	case "SSL_DN_FIELD":
		m = func(r *http.Request) bool {
			p := peer(r)
			return p != nil && test(dnAttribute(p, key))
		}
	}
	return inverted(ru, m), nil
}

func inverted(ru *rule, m matcher) matcher {
	if !ru.Invert {
		return m
	}
	return func(r *http.Request) bool { return !m(r) }
}

func comparison(kind, value string, fold bool) (func(string) bool, error) {
	if kind == "REGEX" {
		re, err := compileRegex(value)
		if err == nil && fold {
			re, err = regexp2.Compile(re.String(), regexp2.IgnoreCase)
		}
		if err != nil {
			return nil, err
		}
		return func(s string) bool {
			ok, err := re.MatchString(s)
			return err == nil && ok
		}, nil
	}
	var test func(s, v string) bool
	switch kind {
	case "STARTS_WITH":
		test = strings.HasPrefix
	case "ENDS_WITH":
		test = strings.HasSuffix
	case "CONTAINS":
		test = strings.Contains
	default:
		test = func(s, v string) bool { return s == v }
	}
	if fold {
		value = strings.ToLower(value)
		return func(s string) bool { return test(strings.ToLower(s), value) }, nil
	}
	return func(s string) bool { return test(s, value) }, nil
}

// elements splits header lines at commas outside quotes, as req.hdr does.
func elements(lines []string) []string {
	var out []string
	for _, line := range lines {
		quoted, start := false, 0
		for i := 0; i < len(line); i++ {
			switch {
			case line[i] == '\\' && quoted:
				i++
			case line[i] == '"':
				quoted = !quoted
			case line[i] == ',' && !quoted:
				out = append(out, strings.TrimSpace(line[start:i]))
				start = i + 1
			}
		}
		out = append(out, strings.TrimSpace(line[start:]))
	}
	return out
}

// rawPath is the path as it came: not decoded, not cleaned, without the query.
// It is empty when the request has none, as with OPTIONS *.
func rawPath(r *http.Request) string {
	uri := rawURI(r)
	if i := strings.IndexByte(uri, '?'); i >= 0 {
		uri = uri[:i]
	}
	return uri
}

// rawURI is path and query as they came.
func rawURI(r *http.Request) string {
	uri := r.RequestURI
	if i := strings.Index(uri, "://"); i > 0 && !strings.HasPrefix(uri, "/") {
		rest := uri[i+3:]
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return "/"
		}
		uri = rest[slash:]
	}
	if !strings.HasPrefix(uri, "/") {
		return ""
	}
	return uri
}

func peer(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil
	}
	return r.TLS.PeerCertificates[0]
}

func dnAttribute(cert *x509.Certificate, key string) string {
	pick := func(l []string) string {
		if len(l) == 0 {
			return ""
		}
		return l[0]
	}
	switch strings.ToUpper(key) {
	case "CN":
		return cert.Subject.CommonName
	case "O":
		return pick(cert.Subject.Organization)
	case "OU":
		return pick(cert.Subject.OrganizationalUnit)
	case "C":
		return pick(cert.Subject.Country)
	case "ST":
		return pick(cert.Subject.Province)
	case "L":
		return pick(cert.Subject.Locality)
	}
	return ""
}

const (
	forbiddenPage   = "<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>\n"
	unavailablePage = "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n"
	timeoutPage     = "<html><body><h1>504 Gateway Time-out</h1>\nThe server didn't respond in time.\n</body></html>\n"
	badGatewayPage  = "<html><body><h1>502 Bad Gateway</h1>\nThe server returned an invalid or incomplete response.\n</body></html>\n"
)

func errorPage(w http.ResponseWriter, status int, page string) {
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(page))
}

// ServeHTTP decides a request: rejections first, then redirects, then pools,
// then the default pool. Positions count only within these classes.
func (s *socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fe := s.front.Load()
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && !fe.allows(from.Addr()) {
		panic(http.ErrAbortHandler) // a connection from before the change
	}
	fe.requests.Add(1)
	for _, p := range fe.rejects {
		if p.matches(r) {
			errorPage(w, http.StatusForbidden, forbiddenPage)
			return
		}
	}
	if fe.protocol == "TERMINATED_HTTPS" && r.TLS == nil {
		// Without a default certificate the bind line has no ssl.
		redirect(w, http.StatusFound, "https://"+r.Host+rawURI(r))
		return
	}
	for _, p := range fe.redirects {
		if p.matches(r) {
			location := p.location
			if location == "" {
				location = p.prefix + rawURI(r)
				if p.prefix == "/" {
					location = rawURI(r)
				}
			}
			redirect(w, p.code, location)
			return
		}
	}
	be := fe.defaultPool
	for _, p := range fe.forwards {
		if p.matches(r) {
			be = p.pool
			break
		}
	}
	if be == nil {
		errorPage(w, http.StatusServiceUnavailable, unavailablePage)
		return
	}
	be.serve(w, r, fe)
}

func redirect(w http.ResponseWriter, code int, location string) {
	w.Header().Set("Location", location)
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(code)
}

// addHeaders inserts what the listener inserts. Only X-Forwarded-For adds a
// line; the others replace what the client sent.
func (fe *frontend) addHeaders(out *http.Request, in *http.Request) {
	client, _, _ := net.SplitHostPort(in.RemoteAddr)
	if fe.headers["X-Forwarded-For"] {
		out.Header.Add("X-Forwarded-For", client)
	}
	if fe.headers["X-Forwarded-Port"] {
		out.Header.Set("X-Forwarded-Port", itoa(fe.port))
	}
	if fe.headers["X-Forwarded-Proto"] {
		proto := "http"
		if fe.protocol == "TERMINATED_HTTPS" {
			proto = "https"
		}
		out.Header.Set("X-Forwarded-Proto", proto)
	}
	if fe.protocol != "TERMINATED_HTTPS" {
		return
	}
	cert, values := peer(in), map[string]string{"X-SSL-Client-Verify": "0", "X-SSL-Client-Has-Cert": "0"}
	if cert != nil {
		sum := sha1.Sum(cert.Raw)
		date := func(t time.Time) string { return t.UTC().Format("060102150405Z") }
		values = map[string]string{"X-SSL-Client-Verify": "0", "X-SSL-Client-Has-Cert": "1",
			"X-SSL-Client-DN": quoteDN(cert.Subject.String()), "X-SSL-Client-CN": `"` + cert.Subject.CommonName + `"`,
			"X-SSL-Issuer": quoteDN(cert.Issuer.String()), "X-SSL-Client-SHA1": strings.ToUpper(hex.EncodeToString(sum[:])),
			"X-SSL-Client-Not-Before": `"` + date(cert.NotBefore) + `"`, "X-SSL-Client-Not-After": `"` + date(cert.NotAfter) + `"`}
	}
	for _, name := range clientHeaders {
		if fe.headers[name] {
			out.Header.Set(name, values[name])
		}
	}
}

func quoteDN(dn string) string { return `"/` + strings.ReplaceAll(dn, ",", "/") + `"` }

// cleanTarget makes the outgoing URL carry the path and query as they came.
func cleanTarget(out *url.URL, in *http.Request) {
	out.RawQuery = in.URL.RawQuery
	out.Path, out.RawPath = in.URL.Path, in.URL.RawPath
}

// tlsVersionNumbers are those that HAProxy serves and asks for: nothing below, whatever a list says.
var tlsVersionNumbers = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// compileTLS loads the certificates of a listener.
func (c *Cloud) compileTLS(l *listener, fe *frontend) error {
	if l.HSTSMaxAge != nil {
		fe.hsts = fmt.Sprintf("max-age=%d;", *l.HSTSMaxAge)
		if l.HSTSIncludeSubdomains {
			fe.hsts += " includeSubDomains;"
		}
		if l.HSTSPreload {
			fe.hsts += " preload;"
		}
	}
	if l.DefaultTLSContainerRef == nil {
		return nil
	}
	certs := &certChooser{}
	for _, ref := range append([]string{*l.DefaultTLSContainerRef}, l.SNIContainerRefs...) {
		cert, err := c.loadCertificate(ref)
		if err != nil {
			return err
		}
		tc := &tls.Certificate{PrivateKey: cert.key, Leaf: cert.chain[0]}
		for _, x := range cert.chain {
			tc.Certificate = append(tc.Certificate, x.Raw)
		}
		certs.list = append(certs.list, tc)
	}
	cfg := &tls.Config{GetCertificate: certs.choose, NextProtos: l.ALPNProtocols, MinVersion: tls.VersionTLS13, CipherSuites: []uint16{}}
	for _, v := range l.TLSVersions {
		if n := tlsVersionNumbers[v]; n != 0 {
			cfg.MinVersion, cfg.MaxVersion = min(cfg.MinVersion, n), max(cfg.MaxVersion, n)
		}
	}
	if cfg.MaxVersion == 0 {
		return errors.New("all versions of TLS are disabled")
	}
	if l.TLSCiphers != nil {
		for _, name := range strings.Split(*l.TLSCiphers, ":") {
			if id, ok := suites[name]; ok {
				cfg.CipherSuites = append(cfg.CipherSuites, id)
			}
		}
	}
	if l.ClientCATLSContainerRef != nil && l.ClientAuthentication != "NONE" {
		ca, err := parseCerts(c.secretByRef(*l.ClientCATLSContainerRef).payload)
		if err != nil {
			return err
		}
		cfg.ClientCAs = x509.NewCertPool()
		for _, x := range ca {
			cfg.ClientCAs.AddCert(x)
		}
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		if l.ClientAuthentication == "OPTIONAL" {
			cfg.ClientAuth = tls.VerifyClientCertIfGiven
		}
	}
	fe.tls = cfg
	return nil
}

// suites are the ciphers of TLS 1.2 that this process can speak, by OpenSSL's names.
var suites = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
}

// certChooser picks by the names inside the certificates: an exact name, then
// a wildcard of one label, then the first certificate, which is the default.
type certChooser struct{ list []*tls.Certificate }

func (cc *certChooser) choose(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if _, err := netip.ParseAddr(name); err == nil {
		name = ""
	}
	wild := ""
	if _, parent, ok := strings.Cut(name, "."); ok {
		wild = "*." + parent
	}
	for _, want := range []string{name, wild} {
		for _, cert := range cc.list {
			for _, n := range append([]string{cert.Leaf.Subject.CommonName}, cert.Leaf.DNSNames...) {
				if want != "" && strings.EqualFold(n, want) && hello.SupportsCertificate(cert) == nil {
					return cert, nil
				}
			}
		}
	}
	return cc.list[0], nil
}
