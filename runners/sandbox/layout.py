"""The sandbox's folders, user and variables: constants that the policy, the zygote and the guest agree on."""

from __future__ import annotations

UID = 1000
"""The learner's user and group ID inside the sandbox. Outside, it is an unprivileged user of the host."""
HOSTNAME = "lockstep"
HOME = "/home/learner"
TMP, SHM = "/tmp", "/dev/shm"  # noqa: S108 - each sandbox has its own
WRITABLE_FOLDERS = (TMP, HOME, SHM)
"""The only folders that learner code can write to. They are in memory."""
DATASETS = "/opt/lockstep/datasets"
"""Where a session sees the node's data set cache, read-only."""
PYTHON_FOLDER = "/opt/lockstep/python"
"""What Python programs that a session starts find first: this package, and the ``sitecustomize`` that uses it."""
GRANTED_GPUS_VARIABLE = "LOCKSTEP_REAL"
"""The environment variable that lists a session's real GPUs as JSON; unset if all its devices are simulated."""
