"""Fills a new cloud: service users, catalog, the demo project and its networks. Prints clouds.yaml. Idempotent but for the
application credential, which is made anew because its secret cannot be read again."""
import os

from client import API, PORTS, Project, password, request, wait_for

MGMT, PUBLIC, DEMO_CIDR = os.environ['MGMT'], os.environ['PUBLIC'], os.environ['DEMO_CIDR']
GATEWAY = DEMO_CIDR.rsplit('.', 1)[0]
URL = f'http://{API}'

wait_for('Keystone', lambda: request('GET', f'{URL}:5000/v3'), 240)
admin = Project('admin', 'admin')


def named(kind, name, **body):
    """The identity object of a kind with a name, made if it is missing."""
    found = admin('GET', 'identity', f'/v3/{kind}s?name={name}')[kind + 's']
    return (found[0] if found else admin('POST', 'identity', f'/v3/{kind}s', {kind: {'name': name, **body}})[kind])['id']


def assign(project, user, *roles):
    for role in roles:
        admin('PUT', 'identity', f'/v3/projects/{project}/users/{user}/roles/{named("role", role)}')


service_project = named('project', 'service', domain_id='default')
demo_project = named('project', 'demo', domain_id='default')
for name, kind in (('neutron', 'network'), ('octavia', 'load-balancer'), ('barbican', 'key-manager')):
    user = named('user', name, password=password(), domain_id='default')
    assign(service_project, user, 'admin', 'service')
    service = named('service', name, type=kind)
    if not admin('GET', 'identity', f'/v3/endpoints?service_id={service}')['endpoints']:
        for interface in ('public', 'internal', 'admin'):
            admin('POST', 'identity', '/v3/endpoints', {'endpoint': {
                'service_id': service, 'interface': interface, 'url': f'{URL}:{PORTS[kind]}', 'region_id': 'RegionOne'}})
demo_user = named('user', 'demo', password=password(), domain_id='default')
ROLES = 'member', 'load-balancer_member', 'creator'
assign(demo_project, demo_user, *ROLES)

wait_for('Neutron', lambda: request('GET', f'{URL}:9696/'), 240)


def network_with_subnet(name, project, subnet, **attributes):
    net = admin.one('networks', f'name={name}') or admin.network('POST', 'networks', {
        'network': {'name': name, 'project_id': project, **attributes}})['network']
    sub = admin.one('subnets', f'network_id={net["id"]}') or admin.network('POST', 'subnets', {'subnet': {
        'name': name.removesuffix('-net') + '-subnet', 'network_id': net['id'], 'project_id': project, 'ip_version': 4,
        **subnet}})['subnet']
    return net['id'], sub['id']


def pool(prefix, first, last):
    return [{'start': f'{prefix}.{first}', 'end': f'{prefix}.{last}'}]


mgmt_net, _ = network_with_subnet('lb-mgmt-net', service_project, {
    'cidr': f'{MGMT}.0/24', 'gateway_ip': None, 'enable_dhcp': False, 'allocation_pools': pool(MGMT, 10, 250)})
mgmt_group = admin.one('security-groups', 'name=lb-mgmt-sg') or admin.network('POST', 'security-groups', {
    'security_group': {'name': 'lb-mgmt-sg', 'project_id': service_project}})['security_group']
public_net, _ = network_with_subnet('public', admin.id, {
    'cidr': f'{PUBLIC}.0/24', 'gateway_ip': f'{PUBLIC}.1', 'enable_dhcp': False, 'allocation_pools': pool(PUBLIC, 50, 250)},
    **{'router:external': True, 'provider:network_type': 'flat', 'provider:physical_network': 'public'})
_, demo_subnet = network_with_subnet('demo-net', demo_project, {
    'cidr': DEMO_CIDR, 'gateway_ip': f'{GATEWAY}.1', 'allocation_pools': pool(GATEWAY, 100, 250)})
if not admin.one('routers', 'name=demo-router'):
    router = admin.network('POST', 'routers', {'router': {
        'name': 'demo-router', 'project_id': demo_project, 'external_gateway_info': {'network_id': public_net}}})['router']
    admin.network('PUT', f'routers/{router["id"]}/add_router_interface', {'subnet_id': demo_subnet})

with open('/etc/gao/amphora.conf', 'w') as f:
    f.write(f'[controller_worker]\namp_secgroup_list = {mgmt_group["id"]}\namp_boot_network_list = {mgmt_net}\n')

demo = Project('demo', 'demo')
credentials = f'/v3/users/{demo.user_id}/application_credentials'
for old in demo('GET', 'identity', credentials + '?name=controller')['application_credentials']:
    demo('DELETE', 'identity', f'{credentials}/{old["id"]}')
credential = demo('POST', 'identity', credentials, {'application_credential': {
    'name': 'controller', 'description': 'the Gateway controller of the test stack',
    'roles': [{'name': role} for role in ROLES]}})['application_credential']

print(f'''clouds:
  stack:
    auth_type: v3applicationcredential
    auth:
      auth_url: {URL}:5000/v3
      application_credential_id: {credential["id"]}
      application_credential_secret: {credential["secret"]}
    region_name: RegionOne
    interface: public
    identity_api_version: 3
  stack-admin:
    auth_type: password
    auth:
      auth_url: {URL}:5000/v3
      username: admin
      password: {password()}
      project_name: admin
      user_domain_id: default
      project_domain_id: default
    region_name: RegionOne
    interface: public
    identity_api_version: 3''')
