package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// launch says how to start the process of a container. It is handed as JSON
// to a copy of this program (enter.go), which becomes the process.
type launch struct {
	// Netns is the path of the Pod's network namespace; empty: the node's.
	Netns string
	// Root is an empty directory; the process sees a fresh file system there.
	Root string
	// Binary is put at Path in the new root and started with Args, of which
	// the first is the name of the program.
	Binary, Path string
	Args, Env    []string
	Dir          string
	Hostname     string
	Files        map[string]string
	Mounts       []mount
	UID, GID     int
	Groups       []int

	ReadOnlyRoot, NoNewPrivileges bool
}

type mount struct {
	Source, Target string
	ReadOnly       bool
}

// enterCommand is the first argument of this program when it is to become a
// container's process.
const enterCommand = "enter-container"

// start starts the process. When it returns without an error the image's
// binary runs; everything that can fail before that is in the error.
func (l *launch) start(stdout, stderr io.Writer) (*exec.Cmd, error) {
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	failR, failW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", enterCommand) //nolint:noctx // it ends by stop, or with the kubelet
	cmd.Env = []string{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{specR, failW} // descriptors 3 and 4
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
	}
	err = cmd.Start()
	_ = specR.Close()
	_ = failW.Close()
	if err != nil {
		_ = specW.Close()
		_ = failR.Close()
		return nil, err
	}
	sendErr := json.NewEncoder(specW).Encode(l)
	_ = specW.Close()
	// The other end closes when the binary is executed.
	failure, readErr := io.ReadAll(failR)
	_ = failR.Close()
	if len(failure) == 0 && sendErr == nil && readErr == nil {
		return cmd, nil
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(failure) > 0 {
		return nil, errors.New(string(failure))
	}
	return nil, fmt.Errorf("starting the process: %w", errors.Join(sendErr, readErr))
}

// user returns who a container runs as. Where only "not root" is asked for it
// is the user that images without root name by custom.
func user(pod *corev1.Pod, c *corev1.Container) (uid, gid int, groups []int) {
	const nonroot = 65532
	ps, cs := pod.Spec.SecurityContext, c.SecurityContext
	if ps == nil {
		ps = &corev1.PodSecurityContext{}
	}
	if cs == nil {
		cs = &corev1.SecurityContext{}
	}
	first := func(a, b *int64, otherwise int) int {
		switch {
		case a != nil:
			return int(*a)
		case b != nil:
			return int(*b)
		}
		return otherwise
	}
	standard := 0
	if deref(cs.RunAsNonRoot) || cs.RunAsNonRoot == nil && deref(ps.RunAsNonRoot) {
		standard = nonroot
	}
	uid = first(cs.RunAsUser, ps.RunAsUser, standard)
	gid = first(cs.RunAsGroup, ps.RunAsGroup, standard)
	if ps.FSGroup != nil {
		groups = append(groups, int(*ps.FSGroup))
	}
	for _, g := range ps.SupplementalGroups {
		groups = append(groups, int(g))
	}
	return uid, gid, groups
}

// mounts places a Pod's volumes in a container.
func mounts(pod *corev1.Pod, c *corev1.Container, dir func(volume string) string) ([]mount, error) {
	written := map[string]bool{}
	for i := range pod.Spec.Volumes {
		written[pod.Spec.Volumes[i].Name] = holdsObjects(&pod.Spec.Volumes[i])
	}
	var out []mount
	for _, m := range c.VolumeMounts {
		if m.SubPathExpr != "" {
			return nil, fmt.Errorf("mount of volume %q: subPathExpr is not supported by the process kubelet", m.Name)
		}
		source := dir(m.Name)
		if m.SubPath != "" {
			source += "/" + strings.Trim(m.SubPath, "/")
		}
		out = append(out, mount{Source: source, Target: m.MountPath, ReadOnly: m.ReadOnly || written[m.Name]})
	}
	return out, nil
}

// etcFiles are the files that Kubernetes and every base image provide.
func etcFiles(pod *corev1.Pod, hostname, clusterDNS string, f facts) map[string]string {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	fmt.Fprintf(&hosts, "%s\t%s\n", f.podIP, hostname)
	for _, a := range pod.Spec.HostAliases {
		fmt.Fprintf(&hosts, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, " "))
	}
	resolv := "# this cluster has no DNS server\n"
	if clusterDNS != "" {
		resolv = fmt.Sprintf("nameserver %s\nsearch %s.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", clusterDNS, pod.Namespace)
	}
	return map[string]string{
		"/etc/hosts":         hosts.String(),
		"/etc/resolv.conf":   resolv,
		"/etc/hostname":      hostname + "\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
		"/etc/passwd":        "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n",
		"/etc/group":         "root:x:0:\nnonroot:x:65532:\nnogroup:x:65534:\n",
	}
}

func hostname(pod *corev1.Pod) string {
	h := pod.Name
	if pod.Spec.Hostname != "" {
		h = pod.Spec.Hostname
	}
	return strings.TrimRight(h[:min(len(h), 63)], "-.")
}
