package main

import "syscall"

// attributes put a child into its own process group, so that Ctrl-C reaches the demo alone, and let the kernel end it with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
