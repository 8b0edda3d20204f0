package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// config is what the flags say.
type config struct {
	kubeconfig, clientCA string
	nodeName             string
	nodeIP               netip.Addr
	podCIDR              netip.Prefix
	apiServer            netip.AddrPort
	clusterDNS           string
	netnsPrefix          string
	stateDir, logDir     string
	images               images
	version              string // of the API server
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == enterCommand {
		os.Exit(enter())
	}
	cfg, err := parseFlags(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "kubelet:", err)
		}
		os.Exit(2)
	}
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func parseFlags(args []string) (config, error) {
	var c config
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "how to reach the API server")
	fs.StringVar(&c.clientCA, "client-ca", "", "CA of the certificate with which the API server asks for logs")
	fs.StringVar(&c.nodeName, "node-name", "", "name of the Node")
	fs.TextVar(&c.nodeIP, "node-ip", netip.Addr{}, "address of the node in its namespace")
	fs.Func("pod-cidr", "addresses of this node's Pods", func(s string) (err error) { c.podCIDR, err = netip.ParsePrefix(s); return err })
	fs.Func("kubernetes-service", "ADDRESS:PORT of the Service \"kubernetes\"", func(s string) (err error) { c.apiServer, err = netip.ParseAddrPort(s); return err })
	fs.StringVar(&c.clusterDNS, "cluster-dns", "", "address of the cluster's DNS server, if it has one")
	fs.StringVar(&c.netnsPrefix, "netns-prefix", "", "prefix of the names of this node's Pod namespaces; what has it is ours to remove")
	fs.StringVar(&c.stateDir, "state-dir", "", "directory for volumes; its Pods are removed at the start")
	fs.StringVar(&c.logDir, "log-dir", "", "directory for a copy of each container's output (none if empty)")
	fs.Var(&c.images, "image", "NAME=PATH: the static binary that stands for an image (repeatable)")
	fs.StringVar(&c.images.file, "images", "", "file with a line \"NAME PATH\" for each image; it is read again for each start")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	for name, missing := range map[string]bool{
		"kubeconfig": c.kubeconfig == "", "client-ca": c.clientCA == "", "node-name": c.nodeName == "", "node-ip": !c.nodeIP.IsValid(),
		"pod-cidr": !c.podCIDR.IsValid(), "kubernetes-service": !c.apiServer.IsValid(), "netns-prefix": c.netnsPrefix == "", "state-dir": c.stateDir == "",
	} {
		if missing {
			return c, fmt.Errorf("--%s is required", name)
		}
	}
	return c, nil
}

func run(cfg config) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log.SetPrefix(cfg.nodeName + " ")
	var err error
	if cfg.stateDir, err = filepath.Abs(cfg.stateDir); err != nil {
		return err
	}
	for _, dir := range []string{cfg.stateDir, cfg.logDir} {
		if dir == "" {
			continue
		}
		if err = os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	rest, err := clientcmd.BuildConfigFromFlags("", cfg.kubeconfig)
	if err != nil {
		return err
	}
	rest.QPS, rest.Burst = 100, 200
	rest.UserAgent = "process-kubelet"
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	k := newKubelet(cfg, client)
	if err := k.clean(); err != nil {
		return err
	}
	if err := k.network.prepare(); err != nil {
		return fmt.Errorf("the node's own end of the Pod network: %w", err)
	}
	if err := serve(ctx, k); err != nil {
		return err
	}
	for {
		err := register(ctx, client, &cfg)
		if err == nil {
			break
		}
		log.Printf("%v; trying again", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
	log.Printf("%s registered: %s, Pods in %s", cfg.nodeName, cfg.nodeIP, cfg.podCIDR)
	go heartbeat(ctx, client, &cfg)
	k.run(ctx)
	log.Print("stopped")
	return nil
}
