#!/usr/bin/env python3
"""After the quickstart: the bill is right to the cent against the recorded start and end, and every link of its
explanation leads to an event that is there."""

import json
import subprocess
import sys
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

PRICE = Decimal(80)


def kashi(*words):
    done = subprocess.run(["kashi", "--profile", "li", "-o", "json", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kashi {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what} is {found!r} and should be {wanted!r}")


def milliseconds(text):
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(at.timestamp() * 1000)


def main():
    jobs = kashi("ps", "-a")["items"]
    check("the number of jobs", len(jobs), 1)
    job = kashi("show", jobs[0]["id"])
    check("the job's status", job["status"], "succeeded")
    used_ms = milliseconds(job["ended_at"]) - milliseconds(job["started_at"])
    exact = PRICE * used_ms / Decimal(3_600_000)
    shown = exact.quantize(Decimal("0.01"), ROUND_HALF_EVEN)

    bill = kashi("bill")
    check("the number of lines", len(bill["lines"]), 1)
    line = bill["lines"][0]
    check("the quantity", line["quantity"], used_ms * 1000)
    check("the amount", Decimal(line["amount"]), exact.quantize(Decimal("1e-8"), ROUND_HALF_EVEN))
    check("the amount shown", Decimal(line["shown"]), shown)
    check("the total", Decimal(bill["total"]["total"]), shown)

    charges = kashi("explain", bill["statement"]["id"])["items"]
    check("the charged quantity", sum(charge["charge"]["quantity"] for charge in charges), line["quantity"])
    links = [event for charge in charges for event in charge["events"]]
    kinds = {event["kind"] for event in links}
    for kind in ("job.submitted", "plan.placed", "lease.started", "lease.ended", "meter.closed", "ledger.charged"):
        if kind not in kinds:
            sys.exit(f"the explanation has no {kind}, only {sorted(kinds)}")
    for event in links:
        followed = kashi("event", str(event["position"]))
        check(f"the event at {event['position']}", followed["kind"], event["kind"])

    output = subprocess.run(["kashi", "--profile", "li", "logs", job["id"]], capture_output=True, check=True).stdout.decode()
    if "final" not in output:
        sys.exit(f"the job's output has no final line:\n{output}")
    print(f"smoke: {used_ms} ms on one card at {PRICE} an hour are {shown}, as billed; {len(links)} links lead to events")


main()
