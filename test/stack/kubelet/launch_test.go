package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestMain lets the test binary stand for the kubelet's second role and for
// the image of a container.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == enterCommand:
		os.Exit(enter())
	case os.Args[0] == "/image/binary":
		speak()
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// libraries are mounted too, because the race detector links the test binary
// dynamically; images are static.
var libraries = []string{"/lib", "/lib64", "/usr"}

// speak prints what a process finds in its container.
func speak() {
	host, _ := os.Hostname()
	entries, _ := os.ReadDir("/")
	var root []string
	for _, e := range entries {
		if !slices.Contains(libraries, "/"+e.Name()) {
			root = append(root, e.Name())
		}
	}
	data, _ := os.ReadFile("/data/file")
	groups, _ := os.Getgroups()
	fmt.Println("args", os.Args[1:], "env", os.Environ(), "host", host, "pid", os.Getpid(), "ids", os.Getuid(), os.Getgid(), groups)
	fmt.Println("root", root, "data", string(data))
	fmt.Println("write", os.WriteFile("/data/file", nil, 0o644) == nil, os.WriteFile("/tmp/x", nil, 0o644) == nil, os.WriteFile("/scratch/x", nil, 0o644) == nil)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *lockedBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
}

func testLaunch(t *testing.T) *launch {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"root", "data", "scratch"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "file"), []byte("hello"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "scratch"), 0o777); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{Root: filepath.Join(dir, "root"), Binary: exe, Path: "/image/binary", Args: []string{"/image/binary", "a", "b c"},
		Env: []string{"K=v"}, Hostname: "pod-0", UID: 65532, GID: 65532, Groups: []int{9}, ReadOnlyRoot: true, NoNewPrivileges: true,
		Files:  map[string]string{"/etc/hosts": "127.0.0.1 localhost\n"},
		Mounts: []mount{{Source: filepath.Join(dir, "data"), Target: "/data", ReadOnly: true}, {Source: filepath.Join(dir, "scratch"), Target: "/scratch"}}}
	for _, dir := range libraries {
		if _, err := os.Stat(dir); err == nil {
			l.Mounts = append(l.Mounts, mount{Source: dir, Target: dir, ReadOnly: true})
		}
	}
	return l
}

func TestLaunch_givesTheProcessAWorldOfItsOwn(t *testing.T) {
	t.Parallel()
	needRoot(t)
	var out lockedBuffer
	cmd, err := testLaunch(t).start(&out, &out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("exit: %v", err)
	}
	for _, want := range []string{
		"args [a b c] env [K=v] host pod-0 pid 1 ids 65532 65532 [9]",
		"root [data dev etc image proc root scratch tmp var] data hello",
		"write false false true",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestLaunch_tellsWhatFailed(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for want, change := range map[string]func(*launch){
		"no-such-namespace": func(l *launch) { l.Netns = netnsPath("no-such-namespace") },
		"/nowhere":          func(l *launch) { l.Binary = "/nowhere" },
		"working directory": func(l *launch) { l.Dir = "/absent" },
		"exec /data/file":   func(l *launch) { l.Path, l.Binary, l.Mounts = "/data/file", l.Mounts[0].Source+"/file", nil },
		"/volume":           func(l *launch) { l.Mounts = append(l.Mounts, mount{Source: "/volume", Target: "/v"}) },
	} {
		l := testLaunch(t)
		change(l)
		cmd, err := l.start(nil, nil)
		if err == nil {
			_ = cmd.Wait()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestUser_containerBeforePodBeforeImage(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	id := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		pod    *corev1.PodSecurityContext
		cont   *corev1.SecurityContext
		expect string
	}{
		{nil, nil, "0 0 []"},
		{&corev1.PodSecurityContext{RunAsUser: id(5), RunAsGroup: id(6), FSGroup: id(7), SupplementalGroups: []int64{8}}, nil, "5 6 [7 8]"},
		{&corev1.PodSecurityContext{RunAsUser: id(5)}, &corev1.SecurityContext{RunAsUser: id(9)}, "9 0 []"},
		{&corev1.PodSecurityContext{RunAsNonRoot: &yes}, nil, "65532 65532 []"},
		{&corev1.PodSecurityContext{RunAsNonRoot: &yes}, &corev1.SecurityContext{RunAsNonRoot: &no}, "0 0 []"},
		{nil, &corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: id(3)}, "3 65532 []"},
	} {
		pod := testPod()
		pod.Spec.SecurityContext = c.pod
		uid, gid, groups := user(pod, &corev1.Container{SecurityContext: c.cont})
		if got := fmt.Sprint(uid, gid, groups); got != c.expect {
			t.Errorf("got %s, want %s", got, c.expect)
		}
	}
}

func TestMounts_objectsAreReadOnly(t *testing.T) {
	t.Parallel()
	pod := testPod()
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cloud"}}},
		{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "s", MountPath: "/s"}, {Name: "e", MountPath: "/e"}, {Name: "s", MountPath: "/f", SubPath: "clouds.yaml"}}}
	got, err := mounts(pod, c, func(v string) string { return "/v/" + v })
	if want := "[{/v/s /s true} {/v/e /e false} {/v/s/clouds.yaml /f true}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v", got, err)
	}
	c.VolumeMounts[0].SubPathExpr = "$(X)"
	if _, err := mounts(pod, c, func(string) string { return "" }); err == nil {
		t.Error("subPathExpr was taken")
	}
}

func TestEtcFiles_nameThePod(t *testing.T) {
	t.Parallel()
	pod := testPod()
	pod.Spec.HostAliases = []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a", "b"}}}
	got := etcFiles(pod, hostname(pod), "10.96.0.10", testFacts)
	if !strings.Contains(got["/etc/hosts"], "10.244.1.2\tweb-0\n10.0.0.1\ta b\n") {
		t.Errorf("hosts: %s", got["/etc/hosts"])
	}
	if !strings.HasPrefix(got["/etc/resolv.conf"], "nameserver 10.96.0.10\nsearch shop.svc.cluster.local") {
		t.Errorf("resolv.conf: %s", got["/etc/resolv.conf"])
	}
	pod.Name = strings.Repeat("x", 62) + "-y"
	if h := hostname(pod); len(h) != 62 {
		t.Errorf("host name %q", h)
	}
}
