//go:build !linux

package main

import "syscall"

// attributes put a child into its own process group, so that Ctrl-C reaches the demo alone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
