"""A survey in the local model: the server never sees a record, four processes of people do, and some of them cheat.

    python examples/local_survey.py [--people 1000] [--rounds 4] [--epsilon 4] [--workers 4]

Each round asks that many people, every one a client of its own that reports once. One in twenty is hostile and hands in
noise, somebody else's report, numbers no device computes, or an answer to another survey. What travels between the
processes is what would travel over a network: the task and the question as JSON, reports as bytes.
"""

from __future__ import annotations

import argparse
import struct
import time
import zlib
from multiprocessing import Pool

import numpy as np

from thresher import LocalSparseRegressor
from thresher.algorithms import LDPIHT
from thresher.local import Client, Server, SurveyQuestion, SurveyTask

FEATURES = 20
TRUTH = np.zeros(FEATURES)
TRUTH[:2] = 1.0, -1.0


def record(person):
    """What only this person's device knows."""
    rng = np.random.default_rng(person)
    x = rng.uniform(-1, 1, FEATURES)
    return x, x @ TRUTH + 0.1 * rng.standard_normal()


def reports(job):
    """The reports of some people, made where their records are."""
    task_text, question_text, people = job
    task, question = SurveyTask.from_json(task_text), SurveyQuestion.from_json(question_text)
    return [Client(task, *record(person)).answer(question) for person in people]


def hostile(number, honest, foreign):
    """Bytes of somebody who cheats: four kinds in turn."""
    if number % 4 == 0:
        return np.random.default_rng(number).bytes(len(honest))
    if number % 4 == 1:
        return honest
    if number % 4 == 2:
        return foreign
    body = honest[:41] + b"\xff" * (len(honest) - 45)  # a coordinate that does not exist
    return body + struct.pack(">I", zlib.crc32(body))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000, help="in every round")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=4)
    options = parser.parse_args()
    estimator = LocalSparseRegressor(
        2, options.epsilon, algorithm=LDPIHT(iterations=options.rounds), feature_bound=1.0, target_bound=2.0
    )
    server, other = (Server(estimator, options.people * options.rounds, FEATURES) for _ in range(2))
    print(server.task.describe(), end="\n\n")
    start, next_person, data = time.perf_counter(), 0, b""
    with Pool(options.workers) as pool:
        while not server.finished:
            people = range(next_person, next_person + options.people)
            next_person += options.people
            parts = [list(people[first :: options.workers]) for first in range(options.workers)]
            public = server.task.to_json(), server.question().to_json()
            (foreign,) = reports((other.task.to_json(), other.question().to_json(), [0]))
            for part in pool.imap_unordered(reports, [(*public, part) for part in parts]):
                for number, data in enumerate(part):
                    server.receive(data)
                    if number % 20 == 0:
                        server.receive(hostile(number // 20, data, foreign))
            print(f"round {server.round}: {server.heard} reports accepted")
            server.close_round()
    model = server.model()
    certificate = model.certificate_
    print(f"\n{len(data)} bytes per report, {server.accepted} accepted in {time.perf_counter() - start:.1f} s")
    print("rejected:", ", ".join(f"{count} {reason}" for reason, count in sorted(server.rejected.items())))
    error, nothing = np.linalg.norm(model.coef_ - TRUTH), np.linalg.norm(TRUTH)
    print(f"support {model.support_.tolist()}, error {error:.3f} (a model of zeros: {nothing:.3f})")
    print(
        f"certificate: {certificate.trust['model']} model, epsilon={certificate.epsilon:g}, grade {certificate.grade},"
    )
    print(f"  protected: {certificate.trust['protected']}")
    print(f"  verifies: {bool(certificate.verify())}; {certificate.notes[-1]}")


if __name__ == "__main__":
    main()
