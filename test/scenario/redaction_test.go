package scenario

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	gwv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gateway-api-openstack/gateway-api-openstack/api/v1alpha1"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/compile"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/controller"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/lb"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/plan"
	"github.com/gateway-api-openstack/gateway-api-openstack/internal/sim"
)

// A whole life with HTTPS, with everything that goes wrong, and services whose refusals repeat the request: no log line, Event, status, error, metric,
// plan, print of any type, object in the cloud, call other than that which stores the secret, or output of kubectl octavia has anything of a private
// key, a certificate, a PKCS#12 bundle, a token or a password.
func TestSecrets_areNowhereInWhatARunWrites(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), hung)
	defer cancel()
	r := &run{T: t, forms: map[string]string{}, noted: map[string]bool{}}
	ctx = ctrl.LoggerInto(ctx, funcr.New(func(prefix, args string) { r.note("log "+prefix, args) }, funcr.Options{Verbosity: 10}))
	w, err := newWorld(ctx, t.TempDir(), sim.Options{UnreadableNames: []string{"unreadable.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for _, command := range []string{
		"apply class.yaml nodes.yaml shop.yaml blog.yaml https.yaml",
		"certificate infra/shop names=shop.example.com key=RSA",
		"fault POST ^/secrets service=barbican status=500 echo=yes message=a_failure",
		"reconcile", "tick 1m",
		"certificate infra/blog names=blog.example.com fault=mismatched", "reconcile",
		"certificate infra/blog names=blog.example.com",
		"fault PUT ^/listeners status=400 echo=yes message=Could_not_retrieve_certificate", "reconcile", "tick 10m",
		"certificate infra/blog names=blog.example.com,unreadable.example.com", "reconcile",
		"certificate infra/blog names=blog.example.com key=RSA",
		"fault POST ^/secrets service=barbican status=413 echo=yes message=too_large", "reconcile", "tick 10m",
		"certificate infra/shop names=shop.example.com",
		"fault POST ^/secrets service=barbican status=403 echo=yes message=Forbidden", "reconcile", "tick 10m",
		"certificate infra/shop names=shop.example.com",
		"fault POST ^/secrets service=barbican cut=after", "reconcile", "tick 10m",
		"fault GET ^/secrets service=barbican status=503 echo=yes message=down", "reconcile", "tick 1m",
		"authority shop/ca", "certificate shop/client names=client.example.com", "apply policy.yaml", "reconcile",
		"tokens", "fault POST tokens service=keystone status=401 echo=yes times=2 message=no", "reconcile", "tick 10m",
		"tokens", "fault POST tokens service=keystone status=500 echo=yes times=2 message=no", "reconcile", "tick 10m",
		"fault GET . service=octavia status=401 echo=yes message=no", "reconcile", "tick 10m",
		"fault GET . service=octavia status=400 echo=yes message=no", "reconcile", "tick 10m",
		"status gateway/infra/edge", "events", "tree", "cloud",
		"octavia dump --file=-", "octavia audit -o json", "octavia audit --all", "octavia tree infra/edge", "octavia plan infra/edge", "octavia plan infra/edge -o json",
		"octavia explain infra/edge https://shop.example.com/", "octavia probe -o json", "octavia endpoints infra/edge",
		"credential", "tick 1m", "revoke", "tokens", "reconcile", "octavia dump --file=-", "credential", "tick 10m",
		"restart", "delete gateway/infra/edge", "reconcile", "tick 10m", "events", "cloud",
	} {
		out, err := w.run(ctx, parse(command, ""))
		r.note(command, out, err)
		if strings.HasPrefix(command, "octavia dump") {
			r.unpack(out)
		}
		r.look(ctx, w)
	}
	r.judge()
}

// run is all that was written, and all that must not be in it: forms by what they are of.
type run struct {
	*testing.T
	written strings.Builder
	forms   map[string]string
	noted   map[string]bool
}

func (r *run) note(what string, values ...any) {
	for _, v := range values {
		text := fmt.Sprint(v)
		if at := what + text; !r.noted[at] {
			r.noted[at] = true
			fmt.Fprintf(&r.written, "%s: %s\n", what, text)
		}
	}
}

// print notes a value by every verb.
func (r *run) print(what string, v any) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		r.note(what, fmt.Sprintf(verb, v)) //nolint:govet // some verbs do not fit, which is what is tried
	}
	text, err := json.Marshal(v)
	r.note(what, string(text), err)
}

// look notes what there is after a command, and learns what must not be seen of it.
func (r *run) look(ctx context.Context, w *world) {
	r.Helper()
	must := func(err error) {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
	}
	for i, c := range w.cloud.Calls() {
		text, err := json.Marshal(c)
		must(err)
		r.note(fmt.Sprint("call ", i), string(text))
	}
	w.cloud.ResetCalls()
	state, err := json.Marshal(w.cloud.Snapshot())
	must(err)
	r.note("cloud", string(state))
	for _, list := range []client.ObjectList{&gwv1.GatewayList{}, &gwv1.HTTPRouteList{}, &gwv1.GatewayClassList{}, &v1alpha1.OpenStackBackendPolicyList{}} {
		must(w.kube.admin.List(ctx, list))
		text, err := json.Marshal(list)
		must(err)
		r.note("objects", string(text))
	}
	for _, registry := range []prometheus.Gatherer{w.metrics, metrics.Registry} {
		families, err := registry.Gather()
		must(err)
		for _, f := range families {
			var text bytes.Buffer
			_, err := expfmt.MetricFamilyToText(&text, f)
			must(err)
			r.note("metric", text.String())
		}
	}
	r.print("reconciler", w.process.gateways)
	r.print("client", w.process.gateways.Cloud)
	r.types(ctx, w)

	var found corev1.SecretList
	must(w.kube.admin.List(ctx, &found))
	for _, s := range found.Items {
		for key, value := range s.Data {
			r.forbidPEM("Secret "+s.Name+" "+key, value)
		}
	}
	for i, text := range w.cloud.Confidential() {
		// CA certificates come from ConfigMaps, which everybody may read.
		if strings.HasPrefix(text, "-----BEGIN CERTIFICATE") {
			continue
		}
		r.forbid(fmt.Sprint("confidential ", i), text)
	}
}

// types prints what a pass holds.
func (r *run) types(ctx context.Context, w *world) {
	r.Helper()
	snapshot, err := w.process.gateways.Reader.Snapshot(ctx, types.NamespacedName{Namespace: "infra", Name: "edge"})
	if err != nil {
		r.note("snapshot", err)
		return
	}
	r.print("snapshot", snapshot)
	r.print("pointer", &snapshot)
	if len(snapshot.Secrets) > 0 {
		r.print("Secrets", snapshot.Secrets)
	}
	facts, err := w.process.gateways.Cloud.Facts(ctx, controller.FactsRequest(snapshot.Config))
	r.print("facts", facts)
	r.print("error", err)
	snapshot.Facts = facts
	compiled := compile.Gateway(snapshot)
	r.print("compiled", compiled)
	have, err := w.process.gateways.Cloud.Observe(ctx, controller.OwnerOf(snapshot))
	r.print("error", err)
	r.print("observed", have)
	empty := lb.Tree{Owner: compiled.Tree.Owner}
	for _, from := range []*lb.Tree{&empty, &have} {
		todo := plan.New(&compiled.Tree, from)
		r.print("plan", todo)
		r.note("plan", todo.String())
		text, err := todo.JSON()
		r.note("plan", string(text), err)
	}
}

// unpack notes what is in a support bundle.
func (r *run) unpack(text string) {
	r.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		r.Fatalf("the bundle cannot be read: %v", err)
	}
	files := 0
	for archive := tar.NewReader(zipped); ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			r.Fatal(err)
		}
		r.note("dump "+header.Name, string(content))
	}
	if files < 4 {
		r.Errorf("the bundle has %d files", files)
	}
}

// forbidPEM forbids all ways to write a PEM block that are not those of every block of its kind.
func (r *run) forbidPEM(what string, text []byte) {
	block, _ := pem.Decode(text)
	if block == nil {
		return
	}
	r.bytes(what, block.Bytes)
	for _, line := range strings.Split(string(text), "\n")[2:] {
		if len(line) >= 24 && !strings.HasPrefix(line, "-") {
			r.forms[line] = what
		}
	}
	// Of a key, the numbers themselves: in that of an elliptic curve the second half is the public one.
	switch key, _ := x509.ParsePKCS8PrivateKey(block.Bytes); key := key.(type) {
	case *ecdsa.PrivateKey:
		d, err := key.Bytes()
		if err != nil {
			r.Fatal(err)
		}
		r.bytes(what, d)
	case *rsa.PrivateKey:
		r.bytes(what, key.D.Bytes())
		for _, prime := range key.Primes {
			r.bytes(what, prime.Bytes())
			r.forms[prime.String()] = what
		}
	}
}

// forbid forbids a text, and what it may be in base64.
func (r *run) forbid(what, text string) {
	if len(text) < 24 {
		r.Fatalf("%s is too short to be looked for", what)
	}
	r.forms[text[len(text)-24:]] = what
	r.bytes(what, []byte(text))
	if bundle, err := base64.StdEncoding.DecodeString(text); err == nil && len(bundle) > 100 {
		r.bytes(what+" decoded", bundle)
	}
}

// bytes forbids the last bytes in every way in which they could be written. Elsewhere DER has much that is the same in all documents; in the end it has
// a signature, a number or a hash.
func (r *run) bytes(what string, b []byte) {
	b = b[max(0, len(b)-24):]
	for _, form := range []string{string(b), hex.EncodeToString(b)[:32], strings.ToUpper(hex.EncodeToString(b))[:32], strings.Trim(fmt.Sprintf("%d", b[:12]), "[]"),
		strings.Trim(fmt.Sprintf("%#v", b[:8])[7:], "{}"), strings.ReplaceAll(strings.Trim(fmt.Sprintf("%d", b[:12]), "[]"), " ", ",")} {
		r.forms[form] = what
	}
	// A base64 text that does not begin here may be shifted by one or two bytes.
	for shift := range 3 {
		if len(b) >= shift+18 {
			r.forms[base64.StdEncoding.EncodeToString(b[shift:shift+18])] = what
			r.forms[base64.RawURLEncoding.EncodeToString(b[shift:shift+18])] = what
		}
	}
}

func (r *run) judge() {
	r.Helper()
	text := r.written.String()
	for _, part := range []string{"log ", "POST", "metric: ", "gateway_api_openstack_cloud_request_seconds", "dump ", "gateways/infra/edge/kubernetes.yaml", "cloud: ", "snapshot: ", "plan: ", "error: ",
		"Warning InvalidCertificateRef", "unreadable.example.com"} {
		if !strings.Contains(text, part) {
			r.Errorf("the test does not see %q", part)
		}
	}
	if len(r.forms) < 300 || len(text) < 1_000_000 {
		r.Fatalf("the test sees too little: %d forms in %d bytes", len(r.forms), len(text))
	}
	r.Logf("%d forms in %d bytes", len(r.forms), len(text))
	told := map[string]bool{}
	for form, name := range r.forms {
		if i := strings.Index(text, form); i >= 0 && !told[name] {
			told[name] = true
			r.Errorf("%s is written: ...%s...", name, text[max(i-120, 0):min(i+40, len(text))])
		}
	}
}

// pemLike is a PEM block of a key, or the beginning of one in base64.
var pemLike = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----|LS0tLS1CRUdJTi|gAAAA[A-Za-z0-9_-]{20,}`)

// What tests compare with, samples and pages hold no keys and no tokens: those of tests are made when they run.
func TestSecrets_areInNoFileThatIsKept(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, dir := range []string{"internal", "test", "docs", "config", "charts"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // a file of the tree
			if err != nil {
				return err
			}
			seen++
			if found := pemLike.Find(text); found != nil {
				t.Errorf("%s has %.40s", path, found)
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if seen < 300 {
		t.Errorf("only %d files were looked at", seen)
	}
}
