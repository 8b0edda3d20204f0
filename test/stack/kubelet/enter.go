package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// enter turns this process into the process of a container. It runs as the
// first process of fresh mount, pid, uts and ipc namespaces, so that nothing
// it mounts outlives it. It returns only when something failed, after having
// told the kubelet what.
func enter() int {
	// Namespaces belong to threads; the thread that calls exec keeps its own.
	runtime.LockOSThread()
	spec, fail := os.NewFile(3, "spec"), os.NewFile(4, "failure")
	syscall.CloseOnExec(4)
	var l launch
	err := json.NewDecoder(spec).Decode(&l)
	if err == nil {
		_ = spec.Close()
		err = l.become()
	}
	_, _ = fmt.Fprint(fail, err)
	return 127
}

func (l *launch) become() error {
	if l.Netns != "" {
		if err := joinNetns(l.Netns); err != nil {
			return err
		}
		// Container runtimes let every user bind low ports in a Pod.
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o644); err != nil {
			return err
		}
	}
	if err := unix.Sethostname([]byte(l.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := l.buildRoot(); err != nil {
		return err
	}
	if err := l.changeRoot(); err != nil {
		return err
	}
	if err := l.changeUser(); err != nil {
		return err
	}
	if l.Dir != "" {
		if err := os.Chdir(l.Dir); err != nil {
			return fmt.Errorf("working directory: %w", err)
		}
	}
	if err := syscall.Exec(l.Path, l.Args, l.Env); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("exec %s: %w (is the binary linked statically? build it with CGO_ENABLED=0)", l.Path, err)
		}
		return fmt.Errorf("exec %s: %w", l.Path, err)
	}
	return nil
}

func joinNetns(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering %s: %w", path, err)
	}
	return nil
}

// buildRoot makes the container's file system below l.Root.
func (l *launch) buildRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", l.Root, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for dir, mode := range map[string]os.FileMode{"proc": 0o555, "dev": 0o755, "etc": 0o755, "tmp": 0o777 | os.ModeSticky, "var/run": 0o755, "root": 0o700} {
		path := filepath.Join(l.Root, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(l.Root, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, d := range []string{"null", "zero", "full", "random", "urandom"} {
		if err := l.bind(mount{Source: "/dev/" + d, Target: "/dev/" + d}); err != nil {
			return err
		}
	}
	for path, text := range l.Files {
		if err := os.WriteFile(filepath.Join(l.Root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	const roots = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(roots); err == nil {
		if err := l.bind(mount{Source: roots, Target: roots, ReadOnly: true}); err != nil {
			return err
		}
	}
	if err := l.bind(mount{Source: l.Binary, Target: l.Path, ReadOnly: true}); err != nil {
		return err
	}
	// An outer mount point comes before what lies in it.
	all := slices.Clone(l.Mounts)
	slices.SortStableFunc(all, func(a, b mount) int { return len(filepath.Clean(a.Target)) - len(filepath.Clean(b.Target)) })
	for _, m := range all {
		if err := l.bind(m); err != nil {
			return err
		}
	}
	return nil
}

// bind shows a file or directory of the node at a place below the root.
func (l *launch) bind(m mount) error {
	// Links in the new root must not lead out of it: nothing has put any there
	// yet, except volumes, below which no mount point is made through a link.
	target := filepath.Join(l.Root, filepath.Clean("/"+m.Target))
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var f *os.File
		if f, err = os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("mount point %s: %w", m.Target, err)
	}
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", m.Target, err)
	}
	if m.ReadOnly {
		if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("mounting %s read-only: %w", m.Target, err)
		}
	}
	return nil
}

// changeRoot makes l.Root the root and lets go of the node's file system.
func (l *launch) changeRoot() error {
	if err := os.Chdir(l.Root); err != nil {
		return err
	}
	switch err := unix.PivotRoot(".", "."); {
	case err == nil:
		if err = unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("leaving the old root: %w", err)
		}
	case errors.Is(err, unix.EINVAL): // the machine runs from its initial ramdisk
		if err = unix.Chroot("."); err != nil {
			return fmt.Errorf("changing the root: %w", err)
		}
	default:
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if l.ReadOnlyRoot {
		if err := unix.Mount("", "/", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("making the root read-only: %w", err)
		}
	}
	return nil
}

func (l *launch) changeUser() error {
	if err := syscall.Setgroups(l.Groups); err != nil {
		return fmt.Errorf("setting groups: %w", err)
	}
	if err := syscall.Setgid(l.GID); err != nil {
		return fmt.Errorf("setting the group: %w", err)
	}
	if err := syscall.Setuid(l.UID); err != nil {
		return fmt.Errorf("setting the user: %w", err)
	}
	if l.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no new privileges: %w", err)
		}
	}
	// A change of user clears the wish to die with the kubelet.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	return nil
}

// netnsPath is where ip(8) keeps named network namespaces.
func netnsPath(name string) string { return "/run/netns/" + strings.ReplaceAll(name, "/", "_") }
