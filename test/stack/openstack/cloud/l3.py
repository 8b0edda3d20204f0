"""Stands for Neutron's L3 agent and for the security groups of amphorae.

Every router is a network namespace router-<id>; floating IPs are its NAT rules and carry traffic; extra routes are its
routes. Security groups filter new TCP connections on the bridges, at the ports that carry VIPs. What should be is read
from Neutron's API, whenever a cheap look into its database says that something changed.
"""
import ipaddress
import os
import subprocess
import time

import pymysql

from client import Project, Refused

PUBLIC = os.environ['PUBLIC']


def sh(command, text=None, check=True):
    r = subprocess.run(['sh', '-ec', command], input=text, capture_output=True, text=True)
    if check and r.returncode:
        raise RuntimeError(f'{command}: {r.stderr.strip()}')
    return r.stdout


def bridge(network, external):
    name = 'br-ext' if network in external else 'brq' + network[:11]
    sh(f'ip link show dev {name} >/dev/null 2>&1 || ip link add {name} type bridge; ip link set {name} up')
    return name


class Router:
    """The namespace of one Neutron router, with what has been realised in it."""

    def __init__(self, router_id):
        self.ns = 'router-' + router_id[:8]
        self.devices, self.routes, self.addresses, self.nat = {}, {}, set(), None
        sh(f'ip netns del {self.ns}', check=False)
        sh(f'ip netns add {self.ns}; ip -n {self.ns} link set lo up; '
           f'nsenter --net=/run/netns/{self.ns} sysctl -qw net.ipv4.ip_forward=1')

    def remove(self):
        sh(f'ip netns del {self.ns}', check=False)

    def realise(self, router, ports, subnets, external, floating):
        ports = {p['id']: p for p in ports}
        for gone in set(self.devices) - set(ports):
            sh(f'ip link del tap{gone[:11]}', check=False)
            del self.devices[gone]
        gateway = None
        for p in ports.values():
            is_gateway = p['device_owner'] == 'network:router_gateway'
            device = ('qg' if is_gateway else 'qr') + p['id'][:11]
            if p['id'] not in self.devices:
                self.plug(p, device, subnets, bridge(p['network_id'], external))
            if is_gateway and p['fixed_ips']:
                gateway = device, p['fixed_ips'][0]['ip_address'], subnets[p['fixed_ips'][0]['subnet_id']]['gateway_ip']
        routes = {r['destination']: r['nexthop'] for r in router['routes']}
        if gateway:
            routes.setdefault('0.0.0.0/0', gateway[2])
        for destination in set(self.routes) - set(routes):
            sh(f'ip -n {self.ns} route del {destination}', check=False)
        for destination, hop in routes.items():
            sh(f'ip -n {self.ns} route replace {destination} via {hop}')
        self.routes = routes
        self.translate(gateway, {f['floating_ip_address']: f['fixed_ip_address'] for f in floating},
                       (router['external_gateway_info'] or {}).get('enable_snat', True))

    def plug(self, port, device, subnets, to):
        tap = 'tap' + port['id'][:11]
        sh(f'ip link del {tap}', check=False)
        sh(f'ip link add {tap} type veth peer name {device} netns {self.ns} address {port["mac_address"]}; '
           f'ip link set {tap} master {to} up; ip -n {self.ns} link set {device} up')
        for f in port['fixed_ips']:
            length = ipaddress.ip_network(subnets[f['subnet_id']]['cidr']).prefixlen
            sh(f'ip -n {self.ns} addr add {f["ip_address"]}/{length} dev {device}')
        self.devices[port['id']] = device

    def translate(self, gateway, floating, masquerade):
        nat = gateway, floating, masquerade
        if nat == self.nat:
            return
        before, after = '', ''
        if gateway:
            device, address, _ = gateway
            for a in self.addresses - set(floating):
                sh(f'ip -n {self.ns} addr del {a}/32 dev {device}', check=False)
            for a in floating:
                sh(f'ip -n {self.ns} addr replace {a}/32 dev {device}')
            before = f'iifname "{device}" meta mark set 2\n' + ''.join(f'ip daddr {a} dnat to {b}\n' for a, b in floating.items())
            after = ''.join(f'oifname "{device}" ip saddr {b} snat to {a}\n' for a, b in floating.items())
            # A floating IP that is used from behind its own router has to answer through it.
            after += f'meta mark != 2 ct status dnat snat to {address}\n'
            if masquerade:
                after += f'oifname "{device}" snat to {address}\n'
        sh(f'nsenter --net=/run/netns/{self.ns} nft -f -', f'''
            table ip nat
            flush table ip nat
            table ip nat {{
                chain before {{ type nat hook prerouting priority -100
                {before} }}
                chain after {{ type nat hook postrouting priority 100
                {after} }}
            }}''')
        self.addresses, self.nat = set(floating), nat
        print('router', self.ns, 'floating', floating, flush=True)


def security_rules(ports, groups):
    """nftables text: new TCP connections to the ports of amphorae that carry a VIP, as their security groups allow."""
    chains, jumps = '', ''
    for p in ports:
        if not p['name'].startswith('octavia-lb-vrrp'):
            continue
        tap = 'tap' + p['id'][:11]
        chain = 'sg_' + tap.replace('-', '_')
        jumps += f'oifname "{tap}" tcp flags & (syn | ack) == syn jump {chain}\n'
        allowed = ''
        for r in (r for g in p['security_groups'] for r in groups.get(g, ())):
            if r['direction'] != 'ingress' or r['ethertype'] != 'IPv4' or r['protocol'] not in ('tcp', None):
                continue
            source = r['remote_ip_prefix']
            match = f'ip saddr {source} ' if source and source != '0.0.0.0/0' else ''
            if r['port_range_min']:
                match += f'tcp dport {r["port_range_min"]}-{r["port_range_max"]} '
            if match:
                allowed += match + 'accept\n'
        chains += f'chain {chain} {{\n{allowed}drop\n}}\n'
    return f'''
        table bridge security
        delete table bridge security
        table bridge security {{
            {chains}
            chain forward {{ type filter hook forward priority 0
            {jumps} }}
        }}'''


class Agent:
    def __init__(self):
        self.admin, self.routers, self.rules = Project('admin', 'admin'), {}, None
        self.db = pymysql.connect(unix_socket='/run/mysqld/mysqld.sock', user='root', database='neutron', autocommit=True)

    def fingerprint(self):
        """Changes with every write to Neutron."""
        with self.db.cursor() as c:
            c.execute('SELECT COUNT(*), SUM(revision_number), MAX(id), MAX(updated_at) FROM standardattributes')
            rows = c.fetchall()
            c.execute('SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT(port_id, security_group_id))), 0) FROM securitygroupportbindings')
            return rows + c.fetchall()

    def realise(self):
        get = self.admin.network
        external = {n['id'] for n in get('GET', 'networks?router:external=true')['networks']}
        subnets = {s['id']: s for s in get('GET', 'subnets')['subnets']}
        ports, floating = get('GET', 'ports')['ports'], get('GET', 'floatingips')['floatingips']
        routers = get('GET', 'routers')['routers']
        groups = {g['id']: g['security_group_rules'] for g in get('GET', 'security-groups')['security_groups']}
        for gone in set(self.routers) - {r['id'] for r in routers}:
            self.routers.pop(gone).remove()
        for r in routers:
            if r['id'] not in self.routers:
                self.routers[r['id']] = Router(r['id'])
            own = [p for p in ports if p['device_id'] == r['id'] and p['device_owner'].startswith('network:router')]
            self.routers[r['id']].realise(r, own, subnets, external, [
                f for f in floating if f['router_id'] == r['id'] and f['fixed_ip_address']])
        rules = security_rules(ports, groups)
        if rules != self.rules:
            sh('nft -f -', rules)
            self.rules = rules
        self.report(floating)

    def report(self, floating):
        """The agent of a real cloud tells Neutron which floating IPs work."""
        for f in floating:
            status = 'ACTIVE' if f['router_id'] and f['fixed_ip_address'] else 'DOWN'
            if f['status'] != status:
                with self.db.cursor() as c:
                    c.execute('UPDATE floatingips SET status = %s WHERE id = %s', (status, f['id']))


def main():
    agent, seen = None, None
    while True:
        try:
            agent = agent or Agent()
            agent.db.ping(reconnect=True)
            now = agent.fingerprint()
            if now != seen:
                agent.realise()
                seen = now
        except (OSError, Refused, RuntimeError, pymysql.Error) as e:
            print('again in 1 s:', repr(e), flush=True)
            seen = None
            time.sleep(1)
        time.sleep(0.2)


main()
