"""A WSGI application for gunicorn whose address /stuck never answers; others give their process."""

import os

# As where BenchLab runs, its addresses are known before the first request.
import benchlab.wsgi  # noqa: F401
from benchlab import gunicorn, request_time

request_time.SECONDS = 1.0
gunicorn.GRACE_SECONDS = 1.0


def application(environment, start_response):
    environment["wsgi.input"].read()
    while environment["PATH_INFO"] == "/stuck":
        pass
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(os.getpid()).encode()]
