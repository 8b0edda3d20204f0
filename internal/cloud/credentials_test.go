package cloud

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// secretVolume is a directory as the kubelet mounts a Secret: the files are links into a directory that is replaced as a whole.
type secretVolume struct {
	*testing.T
	dir     string
	version int
}

func (v *secretVolume) write(files map[string][]byte) {
	v.Helper()
	v.version++
	data := fmt.Sprintf("..%d", v.version)
	must := func(err error) {
		if err != nil {
			v.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(v.dir, data), 0o700))
	for name, text := range files {
		must(os.WriteFile(filepath.Join(v.dir, data, name), text, 0o600))
		if v.version == 1 {
			must(os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)))
		}
	}
	must(os.Symlink(data, filepath.Join(v.dir, "..data_tmp")))
	must(os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
}

// A Keystone behind TLS with an authority of its own, whose file lies beside clouds.yaml in a mounted Secret. Credentials of both kinds and the authority are
// rotated while the client runs.
func TestCredentials_fromAMountedSecretAreRotated(t *testing.T) {
	t.Parallel()
	clock := hurriedClock{sim.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	s, err := sim.New(sim.Options{Clock: clock.FakeClock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	volume := &secretVolume{T: t, dir: t.TempDir()}
	// front puts TLS before the simulator and returns clouds.yaml with its address and authority.
	front := func(yaml []byte) (text []byte, ca []byte, server *httptest.Server) {
		auth := between(string(yaml), "auth_url: ", "\n")
		at, err := url.Parse(strings.Trim(auth, `"`))
		if err != nil {
			t.Fatal(err)
		}
		server = httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host})
		}})
		server.TLS, ca = selfSigned(t)
		server.StartTLS()
		t.Cleanup(server.Close)
		text = []byte(strings.Replace(string(yaml), auth, server.URL+at.Path, 1) + "    cacert: " + filepath.Join(volume.dir, "ca.pem") + "\n")
		return text, ca, server
	}
	yaml, ca, _ := front(s.CloudsYAML("test"))
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": ca})
	c, err := New(t.Context(), Options{CloudsFile: filepath.Join(volume.dir, "clouds.yaml"), Cloud: "test", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	works := func(what string) {
		t.Helper()
		clock.Advance(10 * time.Second)
		if _, err := c.Observe(t.Context(), testOwner); err != nil || c.ReloadError() != nil || c.CredentialError() != nil {
			t.Errorf("%s: %v, reload %v, credentials %v", what, err, c.ReloadError(), c.CredentialError())
		}
	}
	works("an application credential")

	s.RotateCredential()
	yaml, ca, _ = front(s.CloudsYAML("test"))
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": ca})
	works("another application credential, behind another authority")

	yaml, ca, _ = front(s.PasswordCloudsYAML("test", "demo"))
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": ca})
	works("a password")

	// The authority of another server: what worked goes on, and the cause is told.
	_, other := selfSigned(t)
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": other})
	clock.Advance(10 * time.Second)
	if _, err := c.Observe(t.Context(), testOwner); err != nil || !strings.Contains(fmt.Sprint(c.ReloadError()), "certificate of Keystone") {
		t.Errorf("with a wrong authority: %v, reload %v", err, c.ReloadError())
	}
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": []byte("no PEM")})
	clock.Advance(10 * time.Second)
	if _, err := c.Observe(t.Context(), testOwner); err != nil || !strings.Contains(fmt.Sprint(c.ReloadError()), "CA") {
		t.Errorf("with no authority: %v, reload %v", err, c.ReloadError())
	}
	volume.write(map[string][]byte{"clouds.yaml": yaml, "ca.pem": ca})
	works("the right authority again")
}

// Credentials that are revoked are told as long as they are, also to who asks for nothing else, and are well again by themselves.
func TestCheck_followsTheCredentials(t *testing.T) {
	t.Parallel()
	g := newGround(t, sim.Options{TokenTTL: time.Hour}, Options{})
	check := func(want Reason) {
		t.Helper()
		clockwise := 10 * time.Second
		g.clock.Advance(clockwise)
		if err := g.client.Check(t.Context()); ReasonOf(err) != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check("")
	g.sim.ResetCalls()
	check("")
	if n := len(g.sim.Calls()); n != 0 {
		t.Errorf("%d calls while all is well", n)
	}
	refused := g.sim.Inject(sim.Fault{Service: sim.Keystone, Method: http.MethodPost, Status: 401, Times: -1})
	g.sim.RevokeTokens()
	if _, err := g.client.Observe(t.Context(), testOwner); ReasonOf(err) != ReasonAuth || g.client.CredentialError() == nil {
		t.Errorf("with a refusal: %v", err)
	}
	check(ReasonAuth)
	check(ReasonAuth)
	refused.Remove()
	check("")
	if err := g.client.CredentialError(); err != nil {
		t.Error(err)
	}
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	found, _, _ := strings.Cut(rest, to)
	return found
}

// selfSigned is a server certificate for the loopback that is its own authority.
func selfSigned(t *testing.T) (*tls.Config, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "keystone"}, IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
