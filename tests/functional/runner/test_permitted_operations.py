"""Permitted operations work despite all isolation: programs that use much of the system."""

from __future__ import annotations

import pytest

from runners.wire.protocol import Outcome
from tests.factories.real_supervisor import SessionClient

PROGRAMS = {
    "processes and pipes": """
import os, subprocess
assert subprocess.run(['bash', '-c', 'for i in 1 2 3; do echo $i; done | sort -r | head -1'], capture_output=True,
                      text=True, check=True).stdout == '3\\n'
assert subprocess.run('cat', input=b'x' * 300_000, capture_output=True, check=True).stdout == b'x' * 300_000
assert subprocess.run(['true'], close_fds=True, start_new_session=True).returncode == 0
pid = os.fork()
if not pid: os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
""",
    "programs of the system": """
import subprocess, sys, os, shutil
def said(*command):
    done = subprocess.run(command, capture_output=True, text=True, cwd='/tmp')
    assert done.returncode == 0, (command, done.stdout[-500:], done.stderr[-500:])
    return done.stdout
if os.path.isdir('/proc/1'): assert 'PID' in said('ps', 'aux')
assert 'pip' in said(sys.executable, '-m', 'pip', '--version')
said('tar', 'cf', '/tmp/a.tar', '/etc/hosts'); said('tar', 'xf', '/tmp/a.tar', '-C', '/tmp')
said('cp', '-a', '/tmp/etc', '/tmp/b'); said('mv', '/tmp/b', '/home/learner/b'); said('rm', '-r', '/home/learner/b')
said('find', '/tmp', '-name', 'hosts'); said('ls', '-laR', '/tmp'); said('df'); said('uname', '-a'); said('id')
if shutil.which('git'):
    said('git', 'init', '-q', 'g'); open('/tmp/g/f', 'w').write('x')
    said('git', '-C', 'g', 'add', 'f')
    said('git', '-C', 'g', '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-qm', 'x')
    assert 'x' in said('git', '-C', 'g', 'log', '--oneline')
if shutil.which('gcc'):
    open('/tmp/p.c', 'w').write('int main(void){return 0;}'); said('gcc', '-O2', '-o', 'p', 'p.c'); said('/tmp/p')
""",
    "files of every kind": """
import fcntl, mmap, os, shutil, sqlite3, tempfile
from pathlib import Path
db = sqlite3.connect('/tmp/x.db'); db.execute('pragma journal_mode=wal')
db.execute('create table t (a)'); db.executemany('insert into t values (?)', [(i,) for i in range(1000)]); db.commit()
assert db.execute('select sum(a) from t').fetchone() == (499500,)
with open('/tmp/m', 'w+b') as f:
    f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 0); m[:3] = b'abc'; m.flush()
    fcntl.flock(f, fcntl.LOCK_EX); os.fsync(f.fileno())
import numpy as np
a = np.memmap('/tmp/n', 'float32', 'w+', shape=(1000, 100)); a[:] = 1; a.flush()
assert np.memmap('/tmp/n', 'float32', 'r', shape=(1000, 100)).sum() == 100_000
Path('/tmp/d/e').mkdir(parents=True); Path('/tmp/d/f').write_text('x'); os.rename('/tmp/d/f', '/tmp/d/e/f')
os.link('/tmp/d/e/f', '/tmp/d/g'); os.symlink('g', '/tmp/d/h'); os.mkfifo('/tmp/d/i')
os.chmod('/tmp/d/g', 0o600); os.utime('/tmp/d/g'); os.truncate('/tmp/d/g', 0)
shutil.copytree('/tmp/d/e', '/home/learner/e'); shutil.move('/home/learner/e', '/dev/shm/e'); shutil.rmtree('/tmp/d')
with tempfile.NamedTemporaryFile() as t: t.write(b'x')
Path('/dev/null').write_text('x'); assert Path('/dev/zero').open('rb').read(3) == b'\\0\\0\\0'
import ctypes; assert ctypes.CDLL(None).prctl(15, b'renamed', 0, 0, 0) == 0
if os.path.isdir('/proc/1'): assert Path('/proc/self/comm').read_text() == 'renamed\\n'
""",
    "databases and files that libraries lock": """
import fcntl, sqlite3, subprocess, sys
import h5py, numpy as np, pandas as pd
from IPython.core.history import HistoryManager
one, other = sqlite3.connect('/tmp/y.db'), sqlite3.connect('/tmp/y.db', timeout=0)
frame = pd.DataFrame({'a': range(10)})
frame.to_sql('t', one, index=False); assert pd.read_sql('select * from t', other).equals(frame)
one.execute('insert into t values (10)')
try: other.execute('insert into t values (11)'); raise AssertionError('two connections wrote at once')
except sqlite3.OperationalError as e: assert str(e) == 'database is locked', e
one.commit(); other.execute('insert into t values (11)'); other.commit()
for mode in ('delete', 'wal'):
    code = f"import sqlite3; d = sqlite3.connect('/tmp/{mode}.db'); d.execute('pragma journal_mode={mode}'); " \\
           "d.execute('create table t (a)'); d.execute('insert into t values (1)'); d.commit()"
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-900:]
    assert sqlite3.connect(f'/tmp/{mode}.db').execute('select a from t').fetchall() == [(1,)]
history = HistoryManager(shell=get_ipython(), hist_file='/tmp/history.sqlite', enabled=True)
history.store_inputs(1, 'x = 1'); history.writeout_cache(); history.end_session()
assert sqlite3.connect('/tmp/history.sqlite').execute('select source from history').fetchall() == [('x = 1',)]
with h5py.File('/tmp/a.h5', 'w') as f: f['x'] = np.arange(5)
with h5py.File('/tmp/a.h5', 'r') as f: assert f['x'][4] == 4
with open('/tmp/lock', 'w') as f:
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN): fcntl.lockf(f, kind)
import keras
origin = open('/tmp/origin.txt', 'w'); origin.write('x'); origin.close()
assert open(keras.utils.get_file('copy.txt', 'file:///tmp/origin.txt', cache_dir='/tmp/k')).read() == 'x'
""",
    "terminals": """
import os, pty, subprocess
end, other = pty.openpty(); os.write(end, b'x\\n'); assert os.read(other, 2) == b'x\\n'; assert os.isatty(other)
pid, end = pty.fork()
if not pid: os.execvp('bash', ['bash', '-c', 'stty -a >/dev/null && echo in a terminal'])
text = b''
try:
    while piece := os.read(end, 999): text += piece
except OSError: pass
assert os.waitpid(pid, 0)[1] == 0 and b'in a terminal' in text, text
""",
    "sockets on the loopback": """
import asyncio, http.server, socket, threading, urllib.request, os
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert urllib.request.urlopen(f'http://localhost:{server.server_port}/').status == 200
server.shutdown()
for family, address in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    try: u = socket.socket(family, socket.SOCK_DGRAM)
    except OSError: continue
    u.bind((address, 0)); u.sendto(b'x', u.getsockname()); assert u.recv(9) == b'x'
s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s'); s.accept()
b = socket.socket(socket.AF_UNIX); b.bind('\\0mine'); b.listen(); socket.socket(socket.AF_UNIX).connect('\\0mine')
x, y = socket.socketpair(); socket.send_fds(x, [b'x'], [0]); assert len(socket.recv_fds(y, 9, 1)[1]) == 1
assert 'lo' in [name for _, name in socket.if_nameindex()]
import threading
def inner():
    async def main():
        child = await asyncio.create_subprocess_exec('echo', 'hi', stdout=-1)
        return (await child.communicate())[0]
    got.append(asyncio.run(main()))
got = []; t = threading.Thread(target=inner); t.start(); t.join(); assert got == [b'hi\\n'], got
""",
    "several processes of Python": """
import multiprocessing as mp, concurrent.futures as cf, os
from multiprocessing import shared_memory
def square(x): return x * x
with mp.get_context('fork').Pool(3) as pool: assert pool.map(square, range(9)) == [x * x for x in range(9)]
q = mp.get_context('fork').Queue(); l = mp.get_context('fork').Lock()
p = mp.get_context('fork').Process(target=q.put, args=('x',)); p.start(); assert q.get() == 'x'; p.join()
with cf.ThreadPoolExecutor(8) as threads: assert sum(threads.map(square, range(100))) == 328350
m = shared_memory.SharedMemory(create=True, size=1 << 20); m.buf[0] = 1; m.close(); m.unlink()
import subprocess, sys
open('/tmp/spawn.py', 'w').write('''
import multiprocessing as mp
def square(x): return x * x
if __name__ == '__main__':
    for way in ('spawn', 'forkserver'):
        with mp.get_context(way).Pool(2) as pool: assert pool.map(square, range(5)) == [0, 1, 4, 9, 16]
''')
done = subprocess.run([sys.executable, '/tmp/spawn.py'], capture_output=True, text=True)
assert done.returncode == 0, done.stderr[-900:]
""",
    "plots and tables": """
import io, matplotlib.pyplot as plt, pandas as pd
frame = pd.DataFrame({'a': range(10), 'b': range(10)}); frame.to_csv('/tmp/t.csv'); frame.to_pickle('/tmp/t.pkl')
assert pd.read_csv('/tmp/t.csv', index_col=0).equals(frame)
frame.plot(); plt.title('a'); plt.savefig('/tmp/t.png'); plt.savefig('/tmp/t.pdf'); plt.close()
from PIL import Image
assert Image.open('/tmp/t.png').size[0] > 100
""",
    "data pipelines": """
import tensorflow as tf
with tf.io.TFRecordWriter('/tmp/r', 'GZIP') as w:
    for i in range(100): w.write(str(i).encode())
data = tf.data.TFRecordDataset('/tmp/r', 'GZIP').map(tf.strings.to_number, num_parallel_calls=8)
data = data.snapshot('/tmp/snapshot').cache('/tmp/cache').shuffle(100).batch(8).prefetch(tf.data.AUTOTUNE)
for _ in range(2): assert sum(float(tf.reduce_sum(b)) for b in data) == 4950
data.save('/tmp/saved'); assert sum(1 for _ in tf.data.Dataset.load('/tmp/saved')) == 13
""",
    "training on four GPUs, and what is kept of it": """
import numpy as np, tensorflow as tf
with tf.distribute.MirroredStrategy().scope():
    model = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    model.compile('sgd', 'mse')
x = np.ones((64, 8), 'float32')
back = tf.keras.callbacks.ModelCheckpoint('/tmp/c.weights.h5', save_weights_only=True)
model.fit(x, x[:, :1], batch_size=16, epochs=2, verbose=0, callbacks=[back])
model.save('/tmp/m.keras'); tf.keras.models.load_model('/tmp/m.keras').predict(x, verbose=0); model.export('/tmp/e')
compiled = tf.function(lambda t: tf.reduce_sum(t * 2), jit_compile=True)
assert float(compiled(tf.ones(10))) == 20
""",
    "servers that talk by gRPC": """
import socket, tensorflow as tf
probes = [socket.create_server(('127.0.0.1', 0)) for _ in range(2)]
ports = [probe.getsockname()[1] for probe in probes]
for probe in probes: probe.close()
spec = tf.train.ClusterSpec({'ps': [f'localhost:{ports[0]}'], 'worker': [f'localhost:{ports[1]}']})
servers = [tf.distribute.Server(spec, job_name=j, task_index=0, protocol='grpc') for j in ('ps', 'worker')]
with tf.compat.v1.Session(servers[1].target, graph=(g := tf.Graph())) as session, g.as_default():
    with tf.device('/job:ps/task:0'): a = tf.constant(20)
    with tf.device('/job:worker/task:0'): b = a + 22
    assert session.run(b) == 42
""",
}


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in PROGRAMS.items()])
async def test_it_works(learner: SessionClient, code: str) -> None:
    told = await learner.run(code)
    assert told.outcome == Outcome.ok, told.text[-1500:] + str(told.events[-2:])
