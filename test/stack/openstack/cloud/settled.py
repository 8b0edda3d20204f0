"""Waits until the worker takes its queue, the health manager listens, and the router is on the public network; prints the router's
address there."""
import subprocess

from client import Project, wait_for


def worker():
    # Octavia's queue has a consumer when the worker has connected to RabbitMQ.
    out = subprocess.run(['sh', '-c', 'ss -Htnp state established "( dport = :5672 )"'], capture_output=True, text=True).stdout
    return 'octavia-worker' in out


def health_manager():
    out = subprocess.run(['ss', '-Hunlp', 'sport = :5555'], capture_output=True, text=True).stdout
    return out.strip()


demo = Project('demo', 'demo')


def router():
    r = demo.one('routers', 'name=demo-router')
    address = r['external_gateway_info']['external_fixed_ips'][0]['ip_address']
    refused = 7  # of curl: somebody is at that address
    r = subprocess.run(['curl', '-s', '--connect-timeout', '1', f'http://{address}:1/'], capture_output=True)
    return address if r.returncode == refused else None


wait_for('octavia-worker', worker, 240)
wait_for('octavia-health-manager', health_manager, 240)
print(wait_for('the router of the public network', router, 240))
