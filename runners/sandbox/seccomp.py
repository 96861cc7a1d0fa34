"""The system calls a session may not make, as data, compiled by libseccomp.

This is the second net: namespaces and the missing capabilities already refuse most of these. The calls named here
are either doors to other kernels' worth of attack surface (bpf, io_uring, userfaultfd, keyrings) or ways to reach
into another process. 32-bit and x32 calls end the process: libseccomp's answer to a foreign architecture.
"""

from __future__ import annotations

import errno
import socket
import tempfile
from functools import cache

_NEW_NAMESPACES = 0x7E020080  # CLONE_NEWTIME|NEWNS|NEWCGROUP|NEWUTS|NEWIPC|NEWUSER|NEWPID|NEWNET
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

REFUSED = (
    # other worlds: mounts, namespaces, roots
    "mount umount2 pivot_root chroot setns unshare fsopen fsconfig fsmount fspick open_tree move_mount "
    "mount_setattr name_to_handle_at open_by_handle_at "
    # other processes
    "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp "
    # large, young or rarely needed parts of the kernel
    "bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register "
    "add_key request_key keyctl fanotify_init lookup_dcookie vmsplice "
    "memfd_secret landlock_create_ruleset seccomp "
    # the machine itself
    "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff syslog acct quotactl "
    "quotactl_fd settimeofday clock_settime clock_adjtime adjtimex iopl ioperm modify_ldt vhangup personality "
    "nfsservctl uselib ustat sysfs _sysctl create_module get_kernel_syms query_module "
    "move_pages migrate_pages mbind set_mempolicy set_mempolicy_home_node"
)

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
"""The only sockets there are, beside NETLINK_ROUTE, by which libraries list the session's own interfaces."""


@cache
def compile_filter() -> bytes:
    """Compile the filter.

    Returns:
        An array of ``struct sock_filter`` for this machine's architecture.

    Raises:
        RuntimeError: libseccomp is not installed; the message says what to do.
    """
    try:
        import pyseccomp as libseccomp
    except (ImportError, OSError, RuntimeError) as e:
        raise RuntimeError("libseccomp is missing: install the package libseccomp2") from e
    f = libseccomp.SyscallFilter(libseccomp.ALLOW)
    f.set_attr(libseccomp.Attr.ACT_BADARCH, libseccomp.KILL_PROCESS)  # its default would end one thread, the rest hang
    deny = libseccomp.ERRNO(errno.EPERM)
    for name in REFUSED.split():
        try:
            f.add_rule(deny, name)
        except (OSError, ValueError, RuntimeError):
            continue  # a call this architecture or this libseccomp does not have: nothing to refuse
    arg = libseccomp.Arg
    for bit in (1 << n for n in range(32) if _NEW_NAMESPACES & (1 << n)):
        f.add_rule(deny, "clone", arg(0, libseccomp.MASKED_EQ, bit, bit))
    f.add_rule(libseccomp.ERRNO(errno.ENOSYS), "clone3")  # its flags lie in memory; the C library falls back to clone
    for request in (_TIOCSTI, _TIOCLINUX):
        f.add_rule(deny, "ioctl", arg(1, libseccomp.MASKED_EQ, 0xFFFFFFFF, request))
    highest = max(*FAMILIES, socket.AF_NETLINK)
    for family in range(highest):
        if family not in FAMILIES and family != socket.AF_NETLINK:
            f.add_rule(libseccomp.ERRNO(errno.EAFNOSUPPORT), "socket", arg(0, libseccomp.EQ, family))
    f.add_rule(libseccomp.ERRNO(errno.EAFNOSUPPORT), "socket", arg(0, libseccomp.GT, highest))
    netlink = (arg(0, libseccomp.EQ, socket.AF_NETLINK), arg(2, libseccomp.NE, socket.NETLINK_ROUTE))
    f.add_rule(libseccomp.ERRNO(errno.EAFNOSUPPORT), "socket", *netlink)
    with tempfile.TemporaryFile() as out:
        f.export_bpf(out)
        out.seek(0)
        return out.read()
