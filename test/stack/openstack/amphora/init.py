"""First process of an amphora: reaps, takes syslog, and does the few systemctl verbs that the amphora agent uses.

Everything that it and its services write goes to its standard output, which is /var/log/gao/<amphora name>.log of the cloud.
"""
import os
import re
import resource
import select
import shlex
import signal
import socket
import subprocess
import time

UNIT_DIRS = ('/etc/systemd/system/', '/usr/lib/systemd/system/', '/lib/systemd/system/')
AGENT = ['amphora-agent', '--config-file', '/etc/octavia/amphora-agent.conf']


def log(*words):
    print(time.strftime('%H:%M:%S'), 'init:', *words, flush=True)


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def listen(path, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, 0o777)
    return s


class Unit:
    """A service file, as far as the agent's own units need it."""

    def __init__(self, name, path):
        self.name, self.environment, self.settings = name, {}, {}
        with open(path) as f:
            for line in f:
                key, equals, value = line.strip().partition('=')
                if not equals or key[:1] in '#;[':
                    continue
                if key == 'Environment':
                    self.environment.update(pair.split('=', 1) for pair in shlex.split(value))
                else:
                    self.settings.setdefault(key, []).append(value)

    def argv(self, line, main_pid=0):
        values = dict(self.environment, MAINPID=str(main_pid))
        words = shlex.split(line.lstrip('-@+!'))
        return [re.sub(r'\$\{?(\w+)\}?', lambda m: values.get(m.group(1), ''), w) for w in words]


class Service:
    def __init__(self, unit, pid):
        self.unit, self.pid, self.main, self.wanted, self.restart_at = unit, pid, pid, True, None


class Init:
    def __init__(self):
        self.services = {}
        self.syslog = listen('/run/rsyslog/octavia/log', socket.SOCK_DGRAM)
        self.notify = listen('/run/notify.sock', socket.SOCK_DGRAM)
        self.control = listen('/run/amphora-init.sock', socket.SOCK_STREAM)
        self.control.listen(8)
        self.agent = subprocess.Popen(AGENT, stdin=subprocess.DEVNULL)

    def find(self, name):
        for d in UNIT_DIRS:
            if os.path.exists(d + name):
                return Unit(name, d + name)
        return None

    def alive(self, name):
        s = self.services.get(name)
        return bool(s and s.wanted and os.path.exists(f'/proc/{s.pid}'))

    def spawn(self, unit):
        """Starts a service; returns what went wrong, or ''."""
        for line in unit.settings.get('ExecStartPre', []):
            r = run(unit.argv(line))
            if r.returncode and not line.startswith('-'):
                return r.stdout
        argv = unit.argv(unit.settings['ExecStart'][0])
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if unit.name.startswith('haproxy-') and files < int(unit.settings.get('LimitNOFILE', ['0'])[-1]):
            # For a load balancer without an enabled listener Octavia writes maxconn 1000000: HAProxy would want two files for each.
            argv += ['-n', str(files // 4)]
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True,
                             env=dict(os.environ, NOTIFY_SOCKET='/run/notify.sock', **unit.environment))
        service = self.services[unit.name] = Service(unit, p.pid)
        if 'notify' not in unit.settings.get('Type', []):
            return ''
        end = time.monotonic() + 15
        while time.monotonic() < end:
            if select.select([self.notify], [], [], 0.1)[0]:
                message = self.notify.recv(4096).decode()
                main = re.search(r'MAINPID=(\d+)', message)
                if main:
                    service.main = int(main.group(1))
                if 'READY=1' in message:
                    return ''
            if p.poll() is not None:
                del self.services[unit.name]
                return f'exited with {p.returncode}'
        return 'was not ready within 15 s'

    def stop(self, name):
        s = self.services[name]
        s.wanted = False
        os.kill(s.pid, signal.SIGTERM)
        for _ in range(100):
            self.reap()
            if not os.path.exists(f'/proc/{s.pid}'):
                return
            time.sleep(0.05)
        os.kill(s.pid, signal.SIGKILL)

    def systemctl(self, verb, name):
        if verb in ('enable', 'disable', 'daemon-reload', 'reset-failed'):
            return 0, ''
        name = name if name.endswith('.service') else name + '.service'
        unit = self.find(name)
        if unit is None:
            return 5, f'Unit {name} not found.'
        if verb in ('status', 'is-active'):
            return (0, 'active') if self.alive(name) else (3, 'inactive')
        if verb in ('stop', 'restart') and self.alive(name):
            self.stop(name)
        if verb == 'stop':
            return 0, ''
        if verb in ('start', 'restart'):
            problem = '' if self.alive(name) else self.spawn(unit)
            return (1, f'Job for {name} failed. {problem}') if problem else (0, '')
        if verb in ('reload', 'reload-or-restart'):
            if not self.alive(name):
                return 1, f'{name} is not active, cannot reload.'
            for line in unit.settings.get('ExecReload', []):
                r = run(unit.argv(line, self.services[name].main))
                if r.returncode:
                    return 1, r.stdout
            return 0, ''
        return 1, f'unsupported verb {verb}'

    def answer(self):
        connection, _ = self.control.accept()
        with connection:
            words = connection.makefile().readline().split() + ['', '']
            try:
                status, text = self.systemctl(words[0], words[1])
            except (OSError, ValueError, KeyError) as e:
                status, text = 1, repr(e)
            log('systemctl', words[0], words[1], '->', status, text)
            connection.sendall(f'{status}\n{text}'.encode())

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for name, s in list(self.services.items()):
                if s.pid == pid:
                    log(name, 'ended with', status)
                    if s.wanted:
                        s.restart_at = time.monotonic() + 1
                    else:
                        del self.services[name]
            if pid == self.agent.pid:
                log('the agent ended with', status, '- starting it again')
                time.sleep(1)
                self.agent = subprocess.Popen(AGENT, stdin=subprocess.DEVNULL)

    def loop(self):
        while True:
            for s in select.select([self.syslog, self.notify, self.control], [], [], 1)[0]:
                if s is self.control:
                    self.answer()
                elif s is self.syslog:
                    os.write(1, s.recv(65536).rstrip(b'\n\0') + b'\n')
                else:
                    s.recv(4096)
            self.reap()
            for s in list(self.services.values()):
                if s.wanted and s.restart_at and time.monotonic() > s.restart_at:
                    s.restart_at = None
                    self.spawn(s.unit)


def prepare():
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # a unit's LimitNOFILE cannot be had in a container
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    # How agents of different releases find out that systemd is there.
    with open('/proc/self/comm', 'w') as f:
        f.write('systemd')
    for d in ('/run/systemd/system', '/run/rsyslog/octavia', '/run/octavia', '/var/lib/octavia/certs', '/var/log/octavia'):
        os.makedirs(d, exist_ok=True)
    with open('/var/lib/octavia/haproxy-default-user-group.conf', 'w') as f:
        f.write('global\n    group nogroup\n')
    for command in ('ip netns add amphora-haproxy', 'ip -n amphora-haproxy link set lo up',
                    'ip netns exec amphora-haproxy sysctl -qw net.ipv4.ip_forward=1 net.ipv4.ip_nonlocal_bind=1 '
                    'net.ipv6.conf.all.forwarding=1'):
        r = run(command.split())
        if r.returncode:
            log(command, r.stdout)


prepare()
Init().loop()
