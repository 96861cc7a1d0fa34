"""Programs that try to escape. Each prints ``refused`` for each refused attempt, and ``OUT`` for each that worked."""

from __future__ import annotations

TRY = """
import ctypes, os, socket, struct, sys
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)

def attempt(what, action, harmless=()):
    try:
        got = action()
    except OSError as e:
        print('refused', what, e.errno)
        return
    print('refused' if got in harmless else 'OUT', what, repr(got)[:200])

def put(path, text):
    fd = os.open(path, os.O_WRONLY)
    try: return os.write(fd, text)
    finally: os.close(fd)

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
"""

PROGRAMS = {
    "files of the host": """
way = {part for p in (sys.prefix, sys.base_prefix) for part in Path(p).parts} | {'learner'}  # to Python, and home
for path in ('/etc/shadow', '/root', '/home', '/var', '/run', '/sys', '/srv', '/opt/lockstep/../../root', '/work',
             '/boot', '/media', '/proc/1/root/etc/shadow', '/proc/1/cwd', '/proc/kcore', '/dev/mem', '/dev/sda',
             '/dev/kmsg', '/proc/sysrq-trigger'):
    p = Path(path)
    def look():
        if p.is_dir(): return sorted({*os.listdir(p)} - way)
        return p.read_bytes() if os.access(p, os.R_OK) else []
    attempt(path, look, ([],))
""",
    "writing where others read": """
for folder in ('/', '/usr', '/etc', '/usr/bin', sys.prefix, '/dev', '/proc', '/opt/lockstep/datasets',
               '/opt/lockstep/python', '/opt/lockstep/python/runners', '/bin'):
    attempt(folder, lambda: open(os.path.join(folder, 'planted'), 'w').name)
attempt('interpreter', lambda: open(os.path.realpath(sys.executable), 'r+b').name)
from importlib.util import find_spec  # where it lies; the import itself takes seconds
attempt('tensorflow', lambda: open(find_spec('tensorflow').origin, 'a').name)
""",
    "other processes": """
attempt('environ of 1', lambda: Path('/proc/1/environ').read_bytes())
attempt('memory of 1', lambda: open('/proc/1/mem', 'rb').name)
attempt('maps of 1', lambda: Path('/proc/1/maps').read_bytes(), (b'',))
attempt('descriptors of 1', lambda: os.listdir('/proc/1/fd'))
attempt('signal to 1', lambda: os.kill(1, 9) or Path('/proc/1/comm').exists(), (True,))
attempt('stop 1', lambda: os.kill(1, 19) or Path('/proc/1/comm').exists(), (True,))
attempt('ptrace', lambda: call(101, 16, 1, 0, 0))
attempt('process_vm_readv', lambda: call(310, 1, 0, 0, 0, 0, 0))
attempt('process_vm_writev', lambda: call(311, 1, 0, 0, 0, 0, 0))
attempt('pidfd_getfd', lambda: call(438, os.pidfd_open(1), 0, 0))
attempt('kcmp', lambda: call(312, 1, 1, 0, 0, 0))
pids = sorted(int(p) for p in os.listdir('/proc') if p.isdigit())
print('refused' if len(pids) < 10 and pids[0] == 1 else 'OUT', 'others', pids)
""",
    "new namespaces and mounts": """
attempt('unshare user', lambda: call(272, 0x10000000))
attempt('unshare mount', lambda: call(272, 0x00020000))
attempt('clone user', lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt('clone3', lambda: call(435, ctypes.create_string_buffer(88), 88))
attempt('setns', lambda: call(308, os.open('/proc/self/ns/mnt', os.O_RDONLY), 0))
attempt('mount', lambda: call(165, b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('mount proc', lambda: call(165, b'proc', b'/tmp', b'proc', 0, 0))
attempt('umount', lambda: call(166, b'/proc', 2))
attempt('pivot_root', lambda: call(155, b'/tmp', b'/tmp'))
attempt('chroot', lambda: os.chroot('/tmp'))
attempt('open_tree', lambda: call(428, -100, b'/', 1))
attempt('fsopen', lambda: call(430, b'tmpfs', 0))
attempt('mknod', lambda: os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)))
""",
    "large parts of the kernel": """
for name, number, *arguments in (
    ('bpf', 321, 0, 0, 0), ('perf_event_open', 298, 0, 0, 0, 0, 0), ('userfaultfd', 323, 0),
    ('io_uring_setup', 425, 8, ctypes.create_string_buffer(120)), ('keyctl', 250, 0, -3, 0),
    ('add_key', 248, b'user', b'x', b'y', 1, -3), ('request_key', 249, b'user', b'x', 0, 0),
    ('fanotify_init', 300, 0, 0), ('vmsplice', 278, 0, 0, 0, 0), ('init_module', 175, 0, 0, 0),
    ('kexec_load', 246, 0, 0, 0, 0),
    ('reboot', 169, 0, 0, 0, 0), ('swapon', 167, 0, 0), ('syslog', 103, 3, 0, 0), ('personality', 135, 0x0040000),
    ('name_to_handle_at', 303, -100, b'/', 0, 0, 0), ('open_by_handle_at', 304, -100, 0, 0), ('iopl', 172, 3),
    ('modify_ldt', 154, 0, 0, 0), ('quotactl', 179, 0, 0, 0, 0), ('acct', 163, 0), ('clock_settime', 227, 0, 0),
):
    attempt(name, lambda: call(number, *arguments))
attempt('TIOCSTI', lambda: __import__('fcntl').ioctl(os.openpty()[1], 0x5412, b'x'))
""",
    "more rights": """
attempt('setuid 0', lambda: os.setuid(0))
attempt('setgid 0', lambda: os.setgid(0))
attempt('setgroups', lambda: os.setgroups([0]))
attempt('chown', lambda: os.chown('/tmp', 0, 0))
attempt('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))
attempt('idle class of 1', lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
attempt('cores of 1', lambda: os.sched_setaffinity(1, {0}))
for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_PGRP, 1), (os.PRIO_USER, 0)):
    attempt('nice of others', lambda: os.setpriority(which, who, 19))
attempt('realtime', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
import resource
def more_memory(): resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
try: more_memory(); print('OUT rlimit')
except ValueError: print('refused rlimit')
status = dict(l.split(':', 1) for l in Path('/proc/self/status').read_text().splitlines())
bare = all(int(status[c], 16) == 0 for c in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'))
confined = status['NoNewPrivs'].strip() == '1' and status['Seccomp'].strip() == '2'
print('refused' if bare and confined else 'OUT', 'status')
import subprocess
for program in ('su', 'mount', 'passwd', 'chsh', 'newgrp', 'sudo', 'pkexec'):
    for folder in ('/usr/bin/', '/bin/'):
        if os.path.exists(folder + program):
            command = [folder + program, '-c', 'id -u']
            said = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            print('OUT' if said.stdout.strip() == '0' else 'refused', program)
""",
    "sockets to other worlds": """
for name, family, kind, protocol in (
    ('raw', 2, 3, 1), ('raw6', 10, 3, 58), ('packet', 17, 3, 0), ('vsock', 40, 1, 0), ('bluetooth', 31, 3, 1),
    ('netlink audit', 16, 3, 9), ('netlink netfilter', 16, 3, 12), ('netlink uevent', 16, 3, 15), ('alg', 38, 5, 0),
    ('can', 29, 3, 1), ('x25', 9, 5, 0), ('tipc', 30, 1, 0), ('xdp', 44, 3, 0), ('rds', 21, 5, 0), ('kcm', 41, 2, 0),
):
    attempt(name, lambda: socket.socket(family, kind, protocol).family)
socket.socket(16, 3, 0).close()  # the list of its own interfaces is allowed
print('refused' if [n for _, n in socket.if_nameindex()] == ['lo'] else 'OUT', 'interfaces')
attempt('internet', lambda: socket.create_connection(('1.1.1.1', 53), 2))
attempt('names', lambda: socket.getaddrinfo('example.org', 80))
""",
    "links, pipes and programs made by itself": """
attempt('hard link to a program', lambda: os.link(sys.executable, '/tmp/linked'))
attempt('hard link to /etc', lambda: os.link('/etc/passwd', '/tmp/linked'))
os.symlink('/etc/shadow', '/tmp/shadow'); attempt('symbolic link', lambda: open('/tmp/shadow').read())
os.symlink('/proc/1/root', '/tmp/root'); attempt('root of 1', lambda: os.listdir('/tmp/root'))
for path in ('/tmp/disk', '/dev/shm/disk'):
    for kind in (0o020666, 0o060666): attempt('mknod', lambda: os.mknod(path, kind, os.makedev(8, 0)))
import subprocess
id = open(__import__('shutil').which('id'), 'rb').read()
with open('/tmp/id', 'wb') as file: file.write(id)
os.chmod('/tmp/id', 0o6755)
try: fd = os.memfd_create('id', 0)
except PermissionError: fd = os.open('/tmp/id', os.O_RDONLY)  # without a cgroup
else: os.write(fd, id); os.fchmod(fd, 0o6755)
for path in (f'/proc/self/fd/{fd}', '/tmp/id'):
    said = subprocess.run([path, '-u'], capture_output=True, text=True, pass_fds=[fd]).stdout
    print('refused' if said == '1000\\n' else 'OUT', 'set-uid', path, said)
pid = os.fork()
if not pid: os.execve(fd, ['id', '-u'], {})
print('refused' if os.waitpid(pid, 0)[1] == 0 else 'OUT', 'fexecve')
""",
    "the machine's settings": """
import resource
for path in ('kernel/core_pattern', 'kernel/hostname', 'kernel/shmmax', 'vm/overcommit_memory', 'fs/mqueue/msg_max',
             'net/ipv4/ip_forward', 'user/max_user_namespaces', 'user/max_inotify_instances', 'kernel/ns_last_pid'):
    attempt(path, lambda: put('/proc/sys/' + path, b'9'))
for path in ('/proc/sysrq-trigger', '/proc/irq/default_smp_affinity', '/proc/self/uid_map', '/proc/self/gid_map',
             '/proc/self/setgroups', '/proc/1/oom_score_adj', '/proc/1/comm', '/proc/1/clear_refs'):
    attempt(path, lambda: put(path, b'9'))
for score in (b'-999', b'0', b'400', b'1000'):
    attempt('killed after others ' + score.decode(), lambda: put('/proc/self/oom_score_adj', score))
for path in ('/proc/self/comm', '/proc/self/clear_refs', '/proc/self/mem', '/proc/self/coredump_filter'):
    attempt('write ' + path, lambda: open(path, 'r+b', buffering=0))
for name in ('cpu', 'io', 'memory'):
    attempt('pressure ' + name, lambda: put('/proc/pressure/' + name, b'some 150000 2000000'))
for name in ('pressure', 'bus', 'driver', 'fs', 'irq'):
    if os.path.exists('/proc/' + name): attempt('/proc/' + name, lambda: os.listdir('/proc/' + name), ([],))
for path in ('/proc/keys', '/proc/kallsyms', '/proc/modules', '/proc/timer_list', '/proc/key-users', '/proc/cmdline',
             '/proc/config.gz', '/proc/interrupts', '/proc/diskstats', '/proc/partitions', '/proc/locks',
             '/proc/buddyinfo', '/proc/zoneinfo', '/proc/iomem', '/proc/ioports', '/proc/crypto', '/proc/consoles',
             '/proc/swaps', '/proc/dma', '/proc/fb', '/proc/mdstat', '/proc/mtrr', '/proc/slabinfo'):
    attempt(path, lambda: open(path, 'rb').read(), (b'',))
attempt('limits of 1', lambda: call(302, 1, 7, ctypes.create_string_buffer(16), 0))
attempt('hide', lambda: libc.prctl(4, 0, 0, 0, 0), (-1,))
attempt('tracer', lambda: libc.prctl(0x59616d61, -1, 0, 0, 0), (-1,))
try: resource.setrlimit(resource.RLIMIT_CORE, (0, 1)); print('OUT core')
except (OSError, ValueError): print('refused core')
print('refused' if resource.getrlimit(resource.RLIMIT_CORE) == (1, 1) else 'OUT', 'core', os.fork() or os.abort())
attempt('host name', lambda: libc.sethostname(b'x', 1), (-1,))
attempt('shared memory', lambda: call(29, 0, 4096, 0o1600))
attempt('past the page cache', lambda: os.open(sys.executable, os.O_RDONLY | os.O_DIRECT))
attempt('past the page cache later', lambda: __import__('fcntl').fcntl(os.open(sys.executable, 0), 4, os.O_DIRECT))
attempt('past the page cache once', lambda: os.preadv(os.open(sys.executable, 0), [bytearray(1)], 0, 0x80))
attempt('openat2', lambda: call(437, -100, sys.executable.encode(), struct.pack('=QQQ', os.O_DIRECT, 0, 0), 24))
attempt('huge pages', lambda: __import__('mmap').mmap(-1, 1 << 21, flags=0x40022))
""",
    "namespaces again": """
flags = {'user': 0x10000000, 'mnt': 0x20000, 'pid': 0x20000000, 'net': 0x40000000, 'ipc': 0x8000000, 'uts': 0x4000000,
         'cgroup': 0x2000000, 'time': 0x80}
for name, flag in flags.items():
    attempt('unshare ' + name, lambda: call(272, flag))
    if name != 'time': attempt('clone ' + name, lambda: call(56, flag | 17, 0, 0, 0, 0))
    attempt('clone3 ' + name, lambda: call(435, struct.pack('=QQQQQ6Q', flag, 0, 0, 0, 17, *[0] * 6), 88))
    path = f'/proc/self/ns/{name}'
    if os.path.exists(path): attempt('setns ' + name, lambda: call(308, os.open(path, os.O_RDONLY), 0))
attempt('setns by pidfd', lambda: call(308, os.pidfd_open(1), 0x10000000))
for target in (b'/proc', b'/proc/sys', b'/', b'/tmp'):
    for kind in (b'tmpfs', b'proc', b'overlay', b'sysfs', b'cgroup2', b'mqueue', b'fuse'):
        attempt('mount', lambda: call(165, b'none', target, kind, 0, 0))
    attempt('bind', lambda: call(165, b'/etc', target, 0, 4096, 0))
    attempt('remount', lambda: call(165, b'none', target, 0, 32 | 4096, 0))
    attempt('umount', lambda: call(166, target, 2))
attempt('mount_setattr', lambda: call(442, -100, b'/', 0x8000, struct.pack('=4Q', 0, 1, 0, 0), 32))
attempt('move_mount', lambda: call(429, -100, b'/etc', -100, b'/tmp', 0))
""",
}
