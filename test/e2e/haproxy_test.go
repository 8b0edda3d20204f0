//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"time"
)

// checkConfiguration runs in the cloud: it lets the amphora's own HAProxy check the configuration that it runs with, in the
// amphora's file system, and prints it.
const checkConfiguration = `
for p in /proc/[0-9]*; do
	words=$(tr '\0' ' ' <$p/cmdline 2>/dev/null) || continue
	case $words in
	"/usr/sbin/haproxy "*"/$1/haproxy.cfg "*" -L "*) ;;
	*) continue ;;
	esac
	peer=${words##* -L }
	nsenter --target ${p#/proc/} --mount --root sh -c 'cd / && exec /usr/sbin/haproxy -c "$@"' sh -L "${peer%% *}" -f "/var/lib/octavia/$1/haproxy.cfg" -f /var/lib/octavia/haproxy-default-user-group.conf || exit
	exec cat "$p/root/var/lib/octavia/$1/haproxy.cfg"
done
echo "no HAProxy runs for load balancer $1"
exit 1
`

// validConfiguration fails unless HAProxy finds the configuration of a load balancer valid, without a warning. It returns it.
func (g *ground) validConfiguration(loadBalancer string) string {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../stack/openstack/enter.sh", "sh", "-c", checkConfiguration, "sh", loadBalancer)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Errorf("HAProxy does not take its configuration: %v\n%s", err, out)
	}
	return string(out)
}
