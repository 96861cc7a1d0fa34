"""What lives inside a sandbox: PID 1 and the kernels it forks."""
