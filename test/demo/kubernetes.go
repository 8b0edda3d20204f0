package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gateway-api-openstack/gateway-api-openstack/internal/kube"
)

// kubernetes is an API server with its etcd: real ones, with RBAC, and nothing that runs Pods.
type kubernetes struct {
	assets     string
	dir        string
	url        string
	version    string
	kubeconfig string
	ca         []byte
	config     *rest.Config
	client     client.WithWatch
	etcd, api  *process
}

// startKubernetes returns when the API server is ready. What was started is in the result even then when there is an error.
func startKubernetes(ctx context.Context, assets, dir string) (*kubernetes, error) {
	k := &kubernetes{assets: assets, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig")}
	// A free port may be taken by somebody else before its process binds it; then others are tried.
	for attempt := 1; ; attempt++ {
		err := k.start(ctx)
		if err == nil {
			return k, k.connect()
		}
		k.stop()
		if attempt == 3 || ctx.Err() != nil || !strings.Contains(err.Error(), "address already in use") {
			return k, err
		}
	}
}

func (k *kubernetes) start(ctx context.Context) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	token := rand.Text()
	key, err := signingKey()
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"tokens.csv":          token + `,demo,demo,"system:masters"` + "\n",
		"service-account.key": key,
	} {
		if err = os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("preparing the API server: %w", err)
		}
	}
	clients, peers := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	k.etcd, err = spawn(k.dir, "etcd", filepath.Join(k.assets, "etcd"), nil,
		"--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	if err != nil {
		return err
	}
	k.url = "https://127.0.0.1:" + ports[2]
	k.api, err = spawn(k.dir, "kube-apiserver", filepath.Join(k.assets, "kube-apiserver"), nil,
		"--etcd-servers="+clients, "--bind-address=127.0.0.1", "--secure-port="+ports[2], "--cert-dir="+k.dir,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16",
		"--token-auth-file="+filepath.Join(k.dir, "tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+filepath.Join(k.dir, "service-account.key"),
		"--service-account-signing-key-file="+filepath.Join(k.dir, "service-account.key"),
		"--profiling=false", "--v=0")
	if err != nil {
		return err
	}
	// It makes its own certificate before it listens.
	ca, err := os.ReadFile(filepath.Join(k.dir, "apiserver.crt"))
	err = eventually(ctx, time.Minute, func() error {
		switch {
		case k.etcd.ended():
			return nil
		case k.api.ended():
			return nil
		case err == nil:
			return k.ready(ctx, ca, token)
		}
		ca, err = os.ReadFile(filepath.Join(k.dir, "apiserver.crt"))
		return errors.New("kube-apiserver has no certificate yet")
	})
	switch {
	case k.etcd.ended():
		return k.etcd.failed()
	case k.api.ended():
		return k.api.failed()
	case err != nil:
		return fmt.Errorf("kube-apiserver is not ready: %w\n%s", err, k.api.tail(15))
	}
	return nil
}

// ready asks the API server whether it is ready, and writes the kubeconfig.
func (k *kubernetes) ready(ctx context.Context, ca []byte, token string) error {
	k.ca = ca
	if err := k.writeConfig(k.kubeconfig, token); err != nil {
		return err
	}
	var err error
	if k.config, err = clientcmd.BuildConfigFromFlags("", k.kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	k.config.QPS = -1
	if _, err = k.get(ctx, "/readyz"); err != nil {
		return err
	}
	text, err := k.get(ctx, "/version")
	if err != nil {
		return err
	}
	var info version.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("reading the API server's version: %w", err)
	}
	k.version = info.GitVersion
	return nil
}

// writeConfig writes a kubeconfig for a token.
func (k *kubernetes) writeConfig(path, token string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["demo"] = &clientcmdapi.Cluster{Server: k.url, CertificateAuthorityData: k.ca}
	config.AuthInfos["demo"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["demo"] = &clientcmdapi.Context{Cluster: "demo", AuthInfo: "demo"}
	config.CurrentContext = "demo"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

func (k *kubernetes) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := rest.HTTPClientFor(k.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	defer c.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("asking for %s: %w", path, err)
	}
	return body, nil
}

// connect makes the client that the demo looks with.
func (k *kubernetes) connect() error {
	scheme, err := kube.Scheme()
	if err != nil {
		return err
	}
	k.client, err = client.NewWithWatch(k.config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	return nil
}

func (k *kubernetes) stop() {
	if k == nil {
		return
	}
	// Nothing of it is kept, so there is nothing to wait for.
	_ = k.api.stop(syscall.SIGKILL, 5*time.Second)
	_ = k.etcd.stop(syscall.SIGKILL, 5*time.Second)
	_ = os.RemoveAll(filepath.Join(k.dir, "etcd"))
	_ = os.Remove(filepath.Join(k.dir, "apiserver.crt"))
	_ = os.Remove(filepath.Join(k.dir, "apiserver.key"))
}

// kubectl runs kubectl as a user would and returns what it printed.
func (k *kubernetes) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(k.assets, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "KUBECACHEDIR="+filepath.Join(k.dir, "kubectl"))
	var out, problems bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &problems
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil && context.Cause(ctx) != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func freePorts(ctx context.Context, n int) ([]string, error) {
	var ports []string
	for range n {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		// All are held until all are known, so they differ.
		defer func() { _ = l.Close() }()
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// signingKey signs the tokens of service accounts.
func signingKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("making a key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}
