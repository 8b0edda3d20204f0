"""The Neutron side of the join; runs inside the cloud.

up 'NAMESPACE ADDRESS POD_NETWORK'...: network, subnet, ports and routes, made if missing; prints ids and MAC addresses.
down: removes them.
"""
import os
import sys

from client import Project

NODES = os.environ['NODES']
demo = Project('demo', 'demo')


def up(machines):
    pods = [(address, cidr) for _, address, cidr in machines if cidr != '-']
    routes = [{'destination': cidr, 'nexthop': address} for address, cidr in pods]
    net = demo.one('networks', 'name=k8s-net') or demo.network('POST', 'networks', {'network': {'name': 'k8s-net'}})['network']
    # An amphora reads host_routes only when a port is plugged; the router's extra routes work at once, for VIPs on other subnets.
    subnet = demo.one('subnets', 'name=k8s-subnet') or demo.network('POST', 'subnets', {'subnet': {
        'name': 'k8s-subnet', 'network_id': net['id'], 'ip_version': 4, 'cidr': f'{NODES}.0/24', 'gateway_ip': f'{NODES}.1',
        'allocation_pools': [{'start': f'{NODES}.100', 'end': f'{NODES}.250'}], 'host_routes': routes}})['subnet']
    if subnet['host_routes'] != routes:
        demo.network('PUT', f'subnets/{subnet["id"]}', {'subnet': {'host_routes': routes}})
    router = demo.one('routers', 'name=demo-router')
    if not demo.one('ports', f'device_id={router["id"]}&network_id={net["id"]}'):
        demo.network('PUT', f'routers/{router["id"]}/add_router_interface', {'subnet_id': subnet['id']})
    if router['routes'] != routes:
        demo.network('PUT', f'routers/{router["id"]}', {'router': {'routes': routes}})
    for name, address, cidr in machines:
        port = demo.one('ports', f'network_id={net["id"]}&name={name}')
        if port and port['fixed_ips'][0]['ip_address'] != address:
            demo.network('DELETE', f'ports/{port["id"]}')
            port = None
        pairs = [] if cidr == '-' else [{'ip_address': cidr}]
        port = port or demo.network('POST', 'ports', {'port': {
            'name': name, 'network_id': net['id'], 'fixed_ips': [{'subnet_id': subnet['id'], 'ip_address': address}],
            'allowed_address_pairs': pairs}})['port']
        print('machine', name, port['mac_address'])
    print('network', net['id'])
    print('router', router['external_gateway_info']['external_fixed_ips'][0]['ip_address'])


def down():
    net, subnet = demo.one('networks', 'name=k8s-net'), demo.one('subnets', 'name=k8s-subnet')
    if not net:
        return
    ports = demo.network('GET', f'ports?network_id={net["id"]}')['ports']
    foreign = [p['name'] or p['id'] for p in ports if p['device_owner'] not in ('', 'network:router_interface')]
    if foreign:
        sys.exit('the network is still used, by ' + ', '.join(foreign) + ': delete the load balancers first')
    router = demo.one('routers', 'name=demo-router')
    demo.network('PUT', f'routers/{router["id"]}', {'router': {'routes': []}})
    if subnet and demo.one('ports', f'device_id={router["id"]}&network_id={net["id"]}'):
        demo.network('PUT', f'routers/{router["id"]}/remove_router_interface', {'subnet_id': subnet['id']})
    for port in ports:
        if port['device_owner'] == '':
            demo.network('DELETE', f'ports/{port["id"]}')
    demo.network('DELETE', f'networks/{net["id"]}')


if sys.argv[1] == 'up':
    up([line.split() for line in sys.argv[2:]])
else:
    down()
