"""The load balancers of selftest.sh; runs inside the cloud.

create node:ADDRESS:PORT pod:ADDRESS:PORT...: one load balancer for each kind of member and subnet of the VIP; prints addresses.
delete: removes them.
"""
import sys

from client import Project, wait_for

NAME = 'join-selftest'
demo = Project('demo', 'demo')


def all_of(query=''):
    return demo.octavia('GET', f'loadbalancers?name={NAME}{query}')['loadbalancers']


def create(members):
    public = demo.one('networks', 'name=public')['id']
    made = []
    for subnet in ('k8s-subnet', 'demo-subnet'):
        for kind in ('node', 'pod'):
            chosen = [m.split(':')[1:] for m in members if m.startswith(kind + ':')]
            lb = demo.octavia('POST', 'loadbalancers', {'loadbalancer': {
                'name': NAME, 'vip_subnet_id': demo.one('subnets', 'name=' + subnet)['id'], 'listeners': [{
                    'name': 'http', 'protocol': 'HTTP', 'protocol_port': 80, 'default_pool': {
                        'name': 'echo', 'protocol': 'HTTP', 'lb_algorithm': 'ROUND_ROBIN',
                        'healthmonitor': {'type': 'HTTP', 'url_path': '/healthz', 'delay': 2, 'timeout': 1, 'max_retries': 1},
                        'members': [{'address': a, 'protocol_port': int(p)} for a, p in chosen]}}]}})['loadbalancer']
            made.append((f'VIP on {subnet} to {kind}s', lb))
    for what, lb in made:
        wait_for(what, lambda: demo.octavia('GET', f'loadbalancers?id={lb["id"]}')['loadbalancers'][0]['provisioning_status']
                 == 'ACTIVE', 240)
        floating = demo.network('POST', 'floatingips', {'floatingip': {
            'floating_network_id': public, 'port_id': lb['vip_port_id'], 'description': NAME}})['floatingip']
        print(what.replace(' ', '_'), lb['vip_address'])
        print(what.replace(' ', '_') + ',_floating_IP', floating['floating_ip_address'], flush=True)


def delete():
    for f in demo.network('GET', f'floatingips?description={NAME}')['floatingips']:
        demo.network('DELETE', f'floatingips/{f["id"]}')
    wait_for('an end of all changes', lambda: not any(
        lb['provisioning_status'].startswith('PENDING') for lb in all_of()), 240)
    for lb in all_of():
        demo.octavia('DELETE', f'loadbalancers/{lb["id"]}?cascade=true')
    wait_for('the deletion of all load balancers', lambda: not all_of(), 120)


if sys.argv[1] == 'create':
    create(sys.argv[2:])
else:
    delete()
