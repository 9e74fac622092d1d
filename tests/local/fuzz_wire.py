"""Coverage-guided fuzzing of what strangers send, by hand; the suite neither collects nor needs it.

    python -m venv /tmp/fuzz && /tmp/fuzz/bin/pip install atheris -e .
    PYTHONPATH=tests /tmp/fuzz/bin/python tests/local/fuzz_wire.py -max_total_time=60 [corpus folder]

A finding is an exception other than BadReport from bytes, or ValueError from JSON; a report that is accepted but could
not have been sent, or has another encoding; a task whose stated epsilon is not its price.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib

import atheris

with atheris.instrument_imports(include=["thresher.local", "thresher.vaults.randomisers", "thresher.privacy.releases"]):
    from surveys import ESTIMATORS, client_of, could_be_sent, server_of
    from thresher.local import BadReport, SurveyQuestion, SurveyTask, decode, encode

SERVERS = [server_of(name) for name in ESTIMATORS]
REPORTS = [
    client_of(server.task, name, 0).answer(server.question()) for name, server in zip(ESTIMATORS, SERVERS, strict=True)
]


def fuzz_bytes(survey: int, mode: int, data: bytes) -> None:
    task, valid = SERVERS[survey].task, REPORTS[survey]
    if mode == 1:  # a valid report whose tail is replaced
        data = valid[: max(len(valid) - 4 - len(data), 0)] + data
    if mode >= 1:  # with the check that belongs to it
        data += struct.pack(">I", zlib.crc32(data))
    try:
        report = decode(data, task)
    except BadReport:
        report = None
    if report is not None and not (encode(report, task) == data and could_be_sent(task, report.units)):
        raise AssertionError(f"accepted {data!r}")
    if len(SERVERS[survey]._ids) < 1000:
        SERVERS[survey].receive(data)


def fuzz_json(survey: int, mode: int, data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    if mode > 3:  # into a valid task: inserted, or in the place of what was there
        valid = SERVERS[survey].task.to_json()
        at = (data[0] if data else 0) * len(valid) // 256
        text = valid[:at] + text[1:] + valid[at + (len(text) - 1) * (mode == 4) :]
    for kind in (SurveyTask, SurveyQuestion):
        try:
            found = kind.from_json(text)
        except ValueError:
            continue
        if kind.from_json(found.to_json()) != found:
            raise AssertionError(text)
        if isinstance(found, SurveyTask):
            cost, _ = found.release.cost().epsilon(found.delta)
            if not math.isclose(cost, found.epsilon, rel_tol=1e-8):
                raise AssertionError(text)


def one_input(data: bytes) -> None:
    if len(data) >= 2:
        survey, mode = data[0] % len(SERVERS), data[1] % 6
        (fuzz_bytes if mode < 3 else fuzz_json)(survey, mode, data[2:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
