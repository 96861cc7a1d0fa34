"""The runner container's health check: exits with status 0 if the supervisor reports that it is ready."""

import socket
import sys

with socket.socket(socket.AF_UNIX) as supervisor:
    supervisor.settimeout(4)
    supervisor.connect("/run/lockstep/supervisor.sock")
    supervisor.sendall(b"GET /health HTTP/1.1\r\nHost: supervisor\r\nConnection: close\r\n\r\n")
    answer = b"".join(iter(lambda: supervisor.recv(65536), b""))
sys.exit(b'"status":"ready"' not in answer)
