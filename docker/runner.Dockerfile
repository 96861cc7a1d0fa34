# The runner: TensorFlow, the supervisor and the sandboxes for learner code. Build it from the root of the project.

# Python 3.13 lets sessions share most of the zygote's memory: docs/develop/decisions/0001-fork-sessions-from-a-warm-process.md.
# The image also works on 3.11 and 3.12: docker compose build --build-arg PYTHON=3.11-slim-bookworm runner
ARG PYTHON=3.13-slim-trixie
FROM python:$PYTHON AS build
# Needed only behind a mirror: docker compose build --build-arg PIP_INDEX_URL=…
ARG PIP_INDEX_URL="" PIP_EXTRA_INDEX_URL="" PIP_TRUSTED_HOST=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /lockstep

COPY locks/build.txt locks/runner.txt locks/
RUN python3 -m venv /build && /build/bin/pip install -q --no-deps --require-hashes -r locks/build.txt \
 && python3 -m venv --without-pip /venv \
 && /build/bin/pip --python /venv install -q --no-deps --require-hashes -r locks/runner.txt

# For docker/gpu.compose.yml: TensorFlow for GPUs, and CUDA's libraries in the versions that it requires.
ARG CUDA=""
COPY locks/tensorflow-cpu.txt locks/tensorflow-cuda.txt locks/
RUN /build/bin/pip --python /venv install -q --no-deps --require-hashes \
    -r "locks/tensorflow-$([ -n "$CUDA" ] && echo cuda || echo cpu).txt"

# What the extra science needs, for learners' code: LOCKSTEP_RUNNER_SCIENCE=1 docker compose build runner
ARG SCIENCE=""
COPY locks/science.txt locks/
RUN if [ "$SCIENCE" = 1 ]; then /build/bin/pip --python /venv install -q --no-deps --require-hashes -r locks/science.txt; fi

# The project's entry points, so that jupyter_client finds its kernels; the code itself stays in /lockstep.
COPY pyproject.toml hatch_build.py README.md ./
# A published version names itself; see docs/operate/upgrade.md.
ARG LOCKSTEP_VERSION=""
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$LOCKSTEP_VERSION" /build/bin/python -c "from hatchling.build import build_editable; build_editable('/wheels')" \
 && /build/bin/pip --python /venv install -q --no-deps /wheels/*.whl

COPY docker/trim.sh docker/
RUN apt-get update -q && apt-get install -q -y --no-install-recommends binutils && docker/trim.sh /venv \
 && /venv/bin/python -c "import h5py, ipykernel.ipkernel, matplotlib.pyplot, numpy, pandas, tensorflow, tf_keras" \
 && if [ "$SCIENCE" = 1 ]; then \
    /venv/bin/python -c "import networkx, numba, quantecon, scipy.stats, seaborn, sklearn.ensemble, statsmodels.api, sympy"; fi

FROM python:$PYTHON
# Korean and Chinese in learners' plots.
RUN apt-get update -q && apt-get install -q -y --no-install-recommends fonts-droid-fallback && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 lockstep && useradd --uid 10001 --gid 10001 --no-create-home lockstep \
 && install -d -o lockstep -g lockstep -m 700 /run/lockstep /var/lib/lockstep /var/lib/lockstep/datasets
WORKDIR /lockstep
COPY --from=build /venv /venv
COPY runners runners
COPY LICENSE ./
COPY docker/runner-ready.py /usr/local/lib/lockstep/ready.py
COPY docker/runner-start.sh /usr/local/lib/lockstep/start
RUN /venv/bin/python -m compileall -q runners
ENV PATH=/venv/bin:$PATH HOME=/tmp PYTHONUNBUFFERED=1 LOCKSTEP_DATA_DIR=/var/lib/lockstep \
    LOCKSTEP_OUTER_SANDBOX=none
# It starts as root only to get a cgroup for sessions; see docker/runner-start.sh.
ENTRYPOINT ["/usr/local/lib/lockstep/start"]
# This container is the outer sandbox. Untrusted users can reach it, so it checks its isolation before it runs code.
CMD ["python", "-m", "runners.supervisor.server", "--socket", "/run/lockstep/supervisor.sock", "--untrusted-users"]
