"""The code that runs inside a sandbox: PID 1 and the kernels it forks."""
