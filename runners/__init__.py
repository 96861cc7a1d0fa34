"""Everything near learner code: the supervisor, the zygote, the sandbox. Never imports ``app``."""
