"""A program that uploads: python -m tests.api.poster PORT TOKEN KEY TIMES, the body from stdin.

Prints how often each status came, and the ids, as JSON. Without a KEY ("-") none is sent.
"""

import http.client
import json
import sys
from collections import Counter


def main(port: str, token: str, key: str, times: str) -> None:
    body = sys.stdin.read()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if key != "-":
        headers["Idempotency-Key"] = key
    statuses, ids = Counter(), set()
    for _ in range(int(times)):
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        connection.request("POST", "/api/v1/uploads/", body, headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        statuses[answer.status] += 1
        ids.add(found.get("id"))
    print(json.dumps({"statuses": statuses, "ids": sorted(each or 0 for each in ids)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
