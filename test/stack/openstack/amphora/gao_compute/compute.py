"""Octavia compute driver that boots an amphora as a network namespace.

It stands for Nova. A server is a named network namespace amp-<id>, an overlay of the cached root, and mount, pid, uts and ipc
namespaces of its own, in which the real amphora agent runs under a small first process (../init.py). Its Neutron ports are
veth pairs on the bridge of their network.
"""
import collections
import json
import os
import shutil
import signal
import subprocess

from oslo_log import log as logging
from oslo_utils import uuidutils

from octavia.common import constants
from octavia.common import data_models
from octavia.common import exceptions
from octavia.common import keystone
from octavia.compute import compute_base

LOG = logging.getLogger(__name__)
AMPHORAE = '/run/gao/amphorae'
BOOT = '/usr/local/lib/gao/amphora/boot'
MANAGEMENT_BRIDGE = 'br-mgmt'
OWNER = 'compute:nova'

Interface = collections.namedtuple('Interface', 'net_id port_id fixed_ips id')
Group = collections.namedtuple('Group', 'id')


def sh(command, check=True):
    r = subprocess.run(['sh', '-ec', command], capture_output=True, text=True)
    if check and r.returncode:
        raise RuntimeError(f'{command}: {r.stderr.strip()}')


class Neutron:
    def __init__(self):
        self.session = keystone.KeystoneSession('service_auth').get_session()

    def __call__(self, method, path, **body):
        r = self.session.request('/v2.0/' + path, method, json=body or None, raise_exc=False,
                                 endpoint_filter={'service_type': 'network', 'interface': 'public'},
                                 headers={'Accept': 'application/json'})
        if r.status_code == 404:
            raise exceptions.NotFound(resource='Port', id=path)
        if r.status_code >= 400:
            raise RuntimeError(f'neutron {method} {path}: {r.status_code} {r.text}')
        return r.json() if r.text else None


class NetnsComputeDriver(compute_base.ComputeBase):
    def __init__(self):
        super().__init__()
        self.neutron = Neutron()

    @staticmethod
    def _dir(server):
        return os.path.join(AMPHORAE, server)

    @staticmethod
    def _ns(server):
        return 'amp-' + server[:8]

    def _load(self, server):
        if not server:
            # An amphora whose server was never made, since the worker died before.
            raise exceptions.NotFound(resource='Instance', id=server)
        try:
            with open(self._dir(server) + '/server.json') as f:
                return json.load(f)
        except FileNotFoundError:
            raise exceptions.NotFound(resource='Instance', id=server)

    def _save(self, server, record):
        path = self._dir(server) + '/server.json'
        with open(path + '.new', 'w') as f:
            json.dump(record, f)
        os.rename(path + '.new', path)

    def _alive(self, server, record):
        """Whether the recorded process is still this server's (a pid may be used again)."""
        try:
            with open(f'/proc/{record.get("pid")}/cmdline') as f:
                return server in f.read()
        except OSError:
            return False

    def _plug(self, server, port, device, bridge):
        tap = 'tap' + port['id'][:11]
        sh(f'ip link show dev {bridge} >/dev/null 2>&1 || ip link add {bridge} type bridge; ip link set {bridge} up')
        sh(f'ip link add {tap} type veth peer name {device} netns {self._ns(server)} address {port["mac_address"]}; '
           f'ip link set {tap} master {bridge} up')

    def build(self, name='amphora', amphora_flavor=None, image_tag=None, image_owner=None, key_name=None, sec_groups=None,
              network_ids=None, config_drive_files=None, user_data=None, port_ids=None, server_group_id=None,
              availability_zone=None, **_):
        server = uuidutils.generate_uuid()
        base, ns = self._dir(server), self._ns(server)
        for part in ('upper', 'work', 'root'):
            os.makedirs(f'{base}/{part}')
        for path, data in (config_drive_files or {}).items():
            os.makedirs(os.path.dirname(base + '/upper' + path), exist_ok=True)
            with open(base + '/upper' + path, 'w') as f:
                f.write(data)
        record = {'name': name, 'own': [], 'ports': [], 'ip': None, 'flavor': amphora_flavor, 'zone': availability_zone}
        try:
            ports = []
            for network in network_ids or []:
                body = {'network_id': network, 'device_id': server, 'device_owner': OWNER, 'admin_state_up': True}
                if sec_groups:
                    body['security_groups'] = sec_groups
                ports.append(self.neutron('POST', 'ports', port=body)['port'])
                record['own'].append(ports[-1]['id'])
            for port in port_ids or []:
                body = {'device_id': server, 'device_owner': OWNER}
                ports.append(self.neutron('PUT', f'ports/{port}', port=body)['port'])
            sh(f'ip netns add {ns}; ip -n {ns} link set lo up')
            for i, port in enumerate(ports):
                # What a cloud image learns by DHCP; the first network is the management network.
                self._plug(server, port, f'eth{i}', 'brq' + port['network_id'][:11] if i else MANAGEMENT_BRIDGE)
                fixed = port['fixed_ips'][0]
                subnet = self.neutron('GET', 'subnets/' + fixed['subnet_id'])['subnet']
                address = fixed['ip_address'] + '/' + subnet['cidr'].split('/')[1]
                sh(f'ip -n {ns} addr add {address} dev eth{i}; ip -n {ns} link set eth{i} up')
                record['ports'].append(port['id'])
                record['ip'] = record['ip'] or fixed['ip_address']
            with open(f'/var/log/gao/{name}.log', 'ab') as log:
                process = subprocess.Popen(
                    ['nsenter', f'--net=/run/netns/{ns}', 'unshare', '--mount', '--uts', '--ipc', '--pid', '--fork',
                     '--kill-child', '--propagation', 'private', BOOT, base, name],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            record['pid'] = process.pid
            self._save(server, record)
        except Exception as e:
            LOG.exception('the amphora did not boot')
            self._save(server, record)
            self.delete(server)
            raise exceptions.ComputeBuildException(fault=str(e))
        return server

    def delete(self, compute_id):
        try:
            record = self._load(compute_id)
        except exceptions.NotFound:
            return
        if self._alive(compute_id, record):
            os.kill(record['pid'], signal.SIGKILL)  # unshare --kill-child takes the pid namespace along
        sh(f'ip netns del {self._ns(compute_id)}', check=False)
        for port in set(record['ports'] + record['own']):
            sh(f'ip link del tap{port[:11]}', check=False)
            try:
                if port in record['own']:
                    self.neutron('DELETE', f'ports/{port}')
                else:
                    self.neutron('PUT', f'ports/{port}', port={'device_id': '', 'device_owner': ''})
            except Exception as e:
                LOG.info('port %s of deleted server %s: %s', port, compute_id, e)
        shutil.rmtree(self._dir(compute_id), ignore_errors=True)

    def status(self, compute_id):
        try:
            return constants.UP if self._alive(compute_id, self._load(compute_id)) else constants.DOWN
        except exceptions.NotFound:
            return constants.DOWN

    def get_amphora(self, compute_id, management_network_id=None):
        record = self._load(compute_id)
        up = self._alive(compute_id, record)
        return data_models.Amphora(
            compute_id=compute_id, status='ACTIVE' if up else 'ERROR', lb_network_ip=record['ip'],
            cached_zone=record['zone'] or 'nova', image_id=None,
            compute_flavor=record['flavor']), None if up else 'the amphora has ended'

    def attach_network_or_port(self, compute_id, network_id=None, ip_address=None, port_id=None):
        record = self._load(compute_id)
        body = {'device_id': compute_id, 'device_owner': OWNER}
        if port_id:
            port = self.neutron('PUT', f'ports/{port_id}', port=body)['port']
        else:
            body['network_id'] = network_id
            if ip_address:
                body['fixed_ips'] = [{'ip_address': ip_address}]
            port = self.neutron('POST', 'ports', port=body)['port']
            record['own'].append(port['id'])
        if port['id'] not in record['ports']:
            self._plug(compute_id, port, 'hp' + port['id'][:8], 'brq' + port['network_id'][:11])
            record['ports'].append(port['id'])
            self._save(compute_id, record)
        return Interface(port['network_id'], port['id'], port['fixed_ips'], port['id'])

    def detach_port(self, compute_id, port_id):
        try:
            record = self._load(compute_id)
            sh(f'ip link del tap{port_id[:11]}', check=False)
            if port_id in record['ports']:
                record['ports'].remove(port_id)
            if port_id in record['own']:
                record['own'].remove(port_id)
                self.neutron('DELETE', f'ports/{port_id}')
            else:
                self.neutron('PUT', f'ports/{port_id}', port={'device_id': '', 'device_owner': ''})
            self._save(compute_id, record)
        except Exception:
            LOG.exception('detaching port %s', port_id)

    def create_server_group(self, name, policy):
        return Group(uuidutils.generate_uuid())

    def delete_server_group(self, server_group_id):
        pass

    def validate_flavor(self, flavor_id):
        pass

    def validate_availability_zone(self, availability_zone):
        pass
