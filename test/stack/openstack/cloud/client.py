"""A small raw client of the OpenStack APIs, for what runs inside the cloud: nothing but the standard library."""
import json
import os
import time
import urllib.error
import urllib.request

API = os.environ['API']
PORTS = {'identity': 5000, 'network': 9696, 'load-balancer': 9876, 'key-manager': 9311}


def password():
    with open('/etc/gao/password') as f:
        return f.read().strip()


class Refused(Exception):
    """An API answered with a status of 400 or above."""

    def __init__(self, status, what, body):
        super().__init__(f'{what}: {status} {body}')
        self.status = status


def request(method, url, body=None, headers=None, timeout=300):
    data = None if body is None else json.dumps(body).encode()
    headers = {'Content-Type': 'application/json', 'Accept': 'application/json', **(headers or {})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=timeout) as r:
            text, status, answer = r.read(), r.status, r.headers
    except urllib.error.HTTPError as e:
        raise Refused(e.code, f'{method} {url}', e.read().decode(errors='replace')[:500]) from None
    return status, answer, json.loads(text) if text[:1] in (b'{', b'[') else text


def wait_for(what, ready, timeout, pause=0.3):
    """Calls ready() until it returns something true; its last exception is part of the error."""
    end, last = time.monotonic() + timeout, None
    while time.monotonic() < end:
        try:
            result = ready()
            if result:
                return result
        except (OSError, Refused) as e:
            last = e
        time.sleep(pause)
    raise SystemExit(f'{what}: not within {timeout} s' + (f' ({last})' if last else ''))


class Project:
    """Calls the APIs as one user in one project."""

    def __init__(self, user, project):
        self.user, self.name, self.token = user, project, None
        self.sign_in()

    def sign_in(self):
        domain = {'id': 'default'}
        _, headers, body = request('POST', f'http://{API}:5000/v3/auth/tokens', {'auth': {
            'identity': {'methods': ['password'],
                         'password': {'user': {'name': self.user, 'domain': domain, 'password': password()}}},
            'scope': {'project': {'name': self.name, 'domain': domain}}}})
        self.token = headers['X-Subject-Token']
        self.id, self.user_id = body['token']['project']['id'], body['token']['user']['id']

    def __call__(self, method, service, path, body=None):
        url = f'http://{API}:{PORTS[service]}{path}'
        for attempt in (1, 2):
            try:
                return request(method, url, body, {'X-Auth-Token': self.token})[2]
            except Refused as e:
                if e.status != 401 or attempt == 2:
                    raise
                self.sign_in()

    def network(self, method, path, body=None):
        return self(method, 'network', '/v2.0/' + path, body)

    def octavia(self, method, path, body=None):
        return self(method, 'load-balancer', '/v2.0/lbaas/' + path, body)

    def one(self, kind, query):
        """The only network object of a kind that a query finds, or None."""
        found = self.network('GET', f'{kind}?{query}')[kind.replace('-', '_')]
        return found[0] if found else None
