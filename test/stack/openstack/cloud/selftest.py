"""Proves the cloud alone: one fully-populated load balancer answers through its VIP and through a floating IP, changes its
members, respects allowed_cidrs, and leaves nothing behind when it is deleted. Needs no Kubernetes."""
import os
import subprocess
import sys
import time

from client import Project, Refused, wait_for

NS = 'server-selftest'
SERVER = '''
import http.server, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = sys.argv[1].encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): allow_reuse_address = True
Server(('', int(sys.argv[2])), Handler).serve_forever()
'''
began = time.monotonic()
demo, admin = Project('demo', 'demo'), Project('admin', 'admin')


def say(*words):
    print(f'[{time.monotonic() - began:5.1f}s]', *words, flush=True)


def sh(command):
    subprocess.run(['sh', '-ec', command], check=True)


def inventory():
    """What exists, by kind: equal before and after."""
    kinds = {k: len(admin.network('GET', k)[k.replace('-', '_')]) for k in ('ports', 'floatingips', 'security-groups')}
    kinds['load balancers'] = len(demo.octavia('GET', 'loadbalancers')['loadbalancers'])
    kinds['secrets'] = demo('GET', 'key-manager', '/v1/secrets')['total']
    kinds['amphorae'] = len(os.listdir('/run/gao/amphorae'))
    kinds['namespaces'] = len(os.listdir('/run/netns'))
    return kinds


def get(url, ns=None):
    """Status and body of a GET; from a server on demo-net, or from the public side."""
    inside = ['nsenter', f'--net=/run/netns/{ns}'] if ns else []
    r = subprocess.run(inside + ['curl', '-s', '--max-time', '5', '-w', '\n%{http_code}', url], capture_output=True, text=True)
    body, _, status = r.stdout.rpartition('\n')
    return int(status or 0), body


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f'{what}: got {got}, wanted {wanted}')
    say(what, '->', got)


def settle(lb):
    def active():
        found = demo.octavia('GET', f'loadbalancers?id={lb}')['loadbalancers']
        status = found[0]['provisioning_status']
        if status == 'ERROR':
            raise SystemExit(f'load balancer {lb} is in ERROR')
        return status == 'ACTIVE'
    wait_for(f'load balancer {lb}', active, 180, 0.2)


def start_server(network, subnet):
    port = demo.network('POST', 'ports', {'port': {
        'name': NS, 'network_id': network, 'fixed_ips': [{'subnet_id': subnet['id']}]}})['port']
    address, tap, bridge = port['fixed_ips'][0]['ip_address'], 'tap' + port['id'][:11], 'brq' + network[:11]
    sh(f'ip netns add {NS}; ip -n {NS} link set lo up; '
       f'ip link show dev {bridge} >/dev/null 2>&1 || ip link add {bridge} type bridge; ip link set {bridge} up; '
       f'ip link add {tap} type veth peer name eth0 netns {NS} address {port["mac_address"]}; '
       f'ip link set {tap} master {bridge} up; ip -n {NS} addr add {address}/24 dev eth0; '
       f'ip -n {NS} link set eth0 up; ip -n {NS} route add default via {subnet["gateway_ip"]}')
    servers = [subprocess.Popen(['nsenter', f'--net=/run/netns/{NS}', sys.executable, '-c', SERVER, name, number])
               for name, number in (('one', '8080'), ('two', '8081'))]
    return port['id'], address, servers


def pool(name, address, *ports):
    return {'name': name, 'protocol': 'HTTP', 'lb_algorithm': 'ROUND_ROBIN',
            'members': [{'address': address, 'protocol_port': p} for p in ports],
            'healthmonitor': {'type': 'TCP', 'delay': 2, 'timeout': 1, 'max_retries': 1}}


RULE = {'type': 'PATH', 'compare_type': 'STARTS_WITH', 'value': '/two'}


def create_at_once(subnet, address):
    return demo.octavia('POST', 'loadbalancers', {'loadbalancer': {
        'name': 'selftest', 'vip_subnet_id': subnet, 'listeners': [{
            'name': 'http', 'protocol': 'HTTP', 'protocol_port': 80, 'default_pool': pool('one', address, 8080),
            'l7policies': [{'name': 'two', 'action': 'REDIRECT_TO_POOL', 'redirect_pool': pool('two', address, 8081),
                            'rules': [RULE]}]}]}})['loadbalancer']


def create_one_by_one(subnet, address):
    """Octavia 11.0.0 (bookworm) accepts the call above and then drops the listeners."""
    lb = demo.octavia('POST', 'loadbalancers', {'loadbalancer': {'name': 'selftest', 'vip_subnet_id': subnet}})['loadbalancer']

    def child(kind, plural, body):
        settle(lb['id'])
        return demo.octavia('POST', plural, {kind: body})[kind]['id']
    pools = []
    for name, port in (('one', 8080), ('two', 8081)):
        p = pool(name, address, port)
        members, monitor = p.pop('members'), p.pop('healthmonitor')
        pools.append(child('pool', 'pools', {**p, 'loadbalancer_id': lb['id']}))
        child('member', f'pools/{pools[-1]}/members', members[0])
        child('healthmonitor', 'healthmonitors', {**monitor, 'pool_id': pools[-1]})
    listener = child('listener', 'listeners', {'name': 'http', 'protocol': 'HTTP', 'protocol_port': 80,
                                               'loadbalancer_id': lb['id'], 'default_pool_id': pools[0]})
    policy = child('l7policy', 'l7policies', {'action': 'REDIRECT_TO_POOL', 'redirect_pool_id': pools[1], 'listener_id': listener})
    child('rule', f'l7policies/{policy}/rules', RULE)
    return {**lb, 'listeners': [{'id': listener}]}


def main():
    before = inventory()
    say('before:', before)
    public = demo.one('networks', 'name=public')['id']
    network = demo.one('networks', 'name=demo-net')['id']
    subnet = demo.one('subnets', 'name=demo-subnet')
    port, address, servers = start_server(network, subnet)
    lb = floating = None
    try:
        create = create_one_by_one if os.environ['RELEASE'] == 'bookworm' else create_at_once
        lb = create(subnet['id'], address)
        settle(lb['id'])
        say('load balancer is ACTIVE')
        vip = f'http://{lb["vip_address"]}/'
        wait_for('an answer from the VIP', lambda: get(vip, NS)[0] == 200, 30)
        expect('GET VIP/', get(vip, NS), (200, 'one'))
        expect('GET VIP/two', get(vip + 'two', NS), (200, 'two'))

        floating = demo.network('POST', 'floatingips', {'floatingip': {
            'floating_network_id': public, 'port_id': lb['vip_port_id']}})['floatingip']
        outside = f'http://{floating["floating_ip_address"]}/'
        wait_for('an answer from the floating IP', lambda: get(outside)[0] == 200, 30)
        expect('GET floating IP/two', get(outside + 'two'), (200, 'two'))
        wait_for('floating IP ACTIVE', lambda: demo.one(
            'floatingips', f'id={floating["id"]}')['status'] == 'ACTIVE', 10)

        listener = lb['listeners'][0]['id']
        demo.octavia('PUT', f'listeners/{listener}', {'listener': {'allowed_cidrs': [subnet['cidr']]}})
        settle(lb['id'])
        wait_for('allowed_cidrs', lambda: get(outside)[0] == 0, 30)
        expect('GET floating IP outside allowed_cidrs', get(outside)[0], 0)
        expect('GET VIP inside allowed_cidrs', get(vip, NS)[0], 200)

        online = lambda: demo.octavia('GET', f'loadbalancers?id={lb["id"]}')['loadbalancers'][0]['operating_status'] == 'ONLINE'
        wait_for('operating status ONLINE', online, 60)
        say('operating status is ONLINE')
    finally:
        if floating:
            demo.network('DELETE', f'floatingips/{floating["id"]}')
        if lb:
            def gone():
                try:
                    demo.octavia('GET', f'loadbalancers/{lb["id"]}')
                except Refused as e:
                    return e.status == 404
            settle(lb['id'])
            demo.octavia('DELETE', f'loadbalancers/{lb["id"]}?cascade=true')
            wait_for('the deletion of the load balancer', gone, 120)
            say('load balancer is deleted')
        for s in servers:
            s.kill()
        demo.network('DELETE', f'ports/{port}')
        sh(f'ip netns del {NS}')
    after = inventory()
    expect('left behind', {k: after[k] - before[k] for k in before if after[k] != before[k]}, {})


main()
