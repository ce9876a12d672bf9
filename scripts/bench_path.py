#!/usr/bin/env python3
"""Measures the main path of a fresh `kashi up` on loopback: `start_ms`, from exec until /api/v1/health answers, the
median of STARTS; `submit_to_process_ms_p50`, from just before a submission is sent until the process's recorded start,
the median of JOBS one after the other. The same machine runs all of it."""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from datetime import datetime

STARTS = 5
JOBS = 30
PATIENCE_S = 30
PASSWORD = "bench password"


class Platform:
    """A running `kashi up` on a folder."""

    def __init__(self, program, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.token = None
        begun = time.monotonic()
        words = [program, "up", "--data", folder, "--listen", f"127.0.0.1:{self.port}", "--simulate-cards", "4"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.wait(lambda: self.call("GET", "/health") is not None)
        self.start_ms = (time.monotonic() - begun) * 1000

    def secret(self):
        for line in self.process.stdout:
            if "one-time secret" in line:
                return line.split(": ", 1)[1].strip()
        sys.exit("no one-time secret was printed")

    def call(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            sys.exit(f"{method} {path}: {refused.code} {refused.read().decode()}")
        except OSError:
            return None

    def wait(self, so):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            answer = so()
            if answer:
                return answer
            time.sleep(0.005)
        sys.exit("waited in vain")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)


def sign_in(platform):
    """An operator, an engineer, and an active order of two cards."""
    platform.token = platform.call("POST", "/setup", {"secret": platform.secret(), "handle": "admin", "password": PASSWORD})["token"]
    tenant = platform.wait(lambda: next((t["id"] for t in platform.call("GET", "/tenants")["items"] if t["name"] == "demo"), None))
    member = {"handle": "li", "tenant": tenant, "roles": ["engineer"], "password": PASSWORD}
    platform.call("POST", "/members", member)
    operator = platform.token
    platform.token = platform.call("POST", "/login", {"handle": "li", "password": PASSWORD})["token"]
    order = platform.call("POST", "/orders", {"resource": "card.sim-a100", "quantity": 2})["id"]
    engineer, platform.token = platform.token, operator
    platform.call("POST", f"/orders/{order}/approve", {})
    platform.token = engineer
    platform.wait(lambda: [o for o in platform.call("GET", "/orders")["items"] if o["status"] == "active"])


def one_job(platform):
    sent = time.time() * 1000
    body = {"name": "bench", "command": ["true"], "cards": {"model": "sim-a100", "count": 1}}
    job = platform.call("POST", "/jobs", body)["id"]

    def over():
        jobs = platform.call("GET", "/jobs?all=true&limit=1")["items"]
        return jobs[0] if jobs and jobs[0]["id"] == job and jobs[0]["ended_at"] else None

    started = platform.wait(over)["started_at"].replace("Z", "+00:00")
    return datetime.fromisoformat(started).timestamp() * 1000 - sent


def main():
    program = sys.argv[1]
    os.environ.setdefault("RUST_LOG", "error")
    starts = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            platform = Platform(program, folder)
            starts.append(platform.start_ms)
            platform.stop()
    with tempfile.TemporaryDirectory() as folder:
        platform = Platform(program, folder)
        try:
            sign_in(platform)
            took = [one_job(platform) for _ in range(JOBS)]
        finally:
            platform.stop()
    figures = {"start_ms": round(statistics.median(starts)), "submit_to_process_ms_p50": round(statistics.median(took))}
    print(json.dumps(figures))


main()
