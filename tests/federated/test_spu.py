"""Sums of SPU's servers: right up to noise of the law; no sum and no process after a failure."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from thresher.federated.aggregation import Aborted
from thresher.federated.endpoints import free_ports
from thresher.federated.processes import Processes
from thresher.federated.spu import QUESTION, SENT, WORKER, SPUAggregation
from thresher.privacy.laws.dithered_binomial import DitheredBinomial
from waiting import MINUTES, eventually

PYTHON = os.environ.get("THRESHER_SPU_PYTHON", "")
if not PYTHON or subprocess.run([PYTHON, "-c", "import spu"], capture_output=True).returncode != 0:
    pytest.skip("THRESHER_SPU_PYTHON names no interpreter that has spu", allow_module_level=True)

PARTIES = 3
SMALL = DitheredBinomial(coins=64, dither=4)
Integers = NDArray[np.int64]


@pytest.fixture(scope="module", params=["cheetah", "aby3"])
def aggregation(request: pytest.FixtureRequest) -> Iterator[SPUAggregation]:
    with closing(SPUAggregation(PARTIES, protocol=request.param)) as running:
        yield running


def vectors(size: int, largest: int = 2**40) -> list[Integers]:
    return list(np.random.default_rng(size).integers(-largest, largest, (PARTIES, size)))


def noise_of(aggregation: SPUAggregation, parts: list[Integers], law: DitheredBinomial) -> Integers:
    noise: Integers = aggregation.noisy_sum(parts, law) - np.sum(parts, axis=0)  # both wrap around
    return noise


def in_support(noise: Integers, law: DitheredBinomial) -> bool:
    heads = noise + law.offset
    return bool(np.all((heads >= 0) & (heads <= law.weights.sum())))


@pytest.mark.parametrize("law", [DitheredBinomial(), SMALL, DitheredBinomial(coins=2, dither=0)])
def test_the_sum_is_right_up_to_noise_in_the_support_of_the_law(
    aggregation: SPUAggregation, law: DitheredBinomial
) -> None:
    assert in_support(noise_of(aggregation, vectors(104), law), law)


def test_sums_wrap_around_modulo_two_to_the_64(aggregation: SPUAggregation) -> None:
    top, bottom = 2**63 - 1, -(2**63)
    parts = [np.array(part) for part in ([top, bottom, -5], [top, bottom, -7], [top, -1, 3])]
    assert in_support(noise_of(aggregation, parts, SMALL), SMALL)


def test_noise_has_the_mean_and_the_variance_of_the_law(aggregation: SPUAggregation) -> None:
    assert_moments(noise_of(aggregation, vectors(2000), SMALL), SMALL)


def assert_moments(noise: Integers, law: DitheredBinomial) -> None:
    """Within six standard errors each: false alarms below 1e-8.

    The fourth moment of the law is below a normal one's, so the standard error of the variance is at most sqrt(2/n) of
    it.
    """
    assert abs(noise.mean() - law.mean) < 6 * law.sd / math.sqrt(noise.size)
    assert abs(noise.var() / law.variance - 1) < 6 * math.sqrt(2 / noise.size)


def test_noise_has_the_law(aggregation: SPUAggregation) -> None:
    """Chi-square of 20,000 coordinates against the exact chances of a law with few coins; false alarms: 1e-9."""
    law = DitheredBinomial(coins=2, dither=4)
    chances = np.ones(1)
    for weight in law.weights:
        chances = np.convolve(chances, [0.5, *[0.0] * (weight - 1), 0.5])
    noise = noise_of(aggregation, vectors(20_000), law)
    seen, expected = np.bincount(noise + law.offset, minlength=chances.size), noise.size * chances
    often = expected >= 5
    pooled = [np.append(counts[often], counts[~often].sum()) for counts in (seen, expected)]
    assert stats.chisquare(*pooled).pvalue > 1e-9


def test_noise_is_fresh_in_every_call_and_coordinate(aggregation: SPUAggregation) -> None:
    """Two draws agree with probability below 0.01, so half of 200 never do (below 1e-100)."""
    parts = vectors(200)
    first, second = noise_of(aggregation, parts, SMALL), noise_of(aggregation, parts, SMALL)
    assert np.mean(first == second) < 0.5
    assert np.mean(first[1:] == first[:-1]) < 0.5


def test_bytes_are_counted(aggregation: SPUAggregation) -> None:
    before = aggregation.bytes_sent
    aggregation.noisy_sum(vectors(50), SMALL)
    after = aggregation.bytes_sent
    assert before is not None
    assert after is not None
    assert after - before > 50 * SMALL.bits  # at least a byte a coin


def test_vectors_that_do_not_fit_are_refused_without_telling_their_numbers(aggregation: SPUAggregation) -> None:
    secret = np.array([4711])
    with pytest.raises(ValueError, match="2 vectors: give one for each of the 3"):
        aggregation.noisy_sum([secret] * 2, SMALL)
    for wrong in (np.array([4711.5]), np.array([[4711]]), np.array([4711, 4712]), np.array([4711], dtype=np.int32)):
        with pytest.raises(ValueError, match=r"parts\[2\]") as caught:
            aggregation.noisy_sum([secret, secret, wrong], SMALL)
        assert "471" not in str(caught.value)


def test_servers_listen_on_this_machine_only(aggregation: SPUAggregation) -> None:
    for process in aggregation.processes.ids:
        sockets = {os.readlink(entry) for entry in Path(f"/proc/{process}/fd").iterdir() if entry.exists()}
        listening = [
            row[1]
            for table in ("tcp", "tcp6")
            for row in map(str.split, Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:])
            if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
        ]
        assert [address.split(":")[0] for address in listening] == ["0100007F"]  # 127.0.0.1, low byte first


@pytest.mark.parametrize("protocol", ["cheetah", "aby3"])
def test_a_killed_server_aborts_the_round_and_no_server_stays(protocol: Any) -> None:
    aggregation = SPUAggregation(PARTIES, protocol=protocol)
    ids = aggregation.processes.ids
    assert in_support(noise_of(aggregation, vectors(5), SMALL), SMALL)
    os.kill(ids[0], signal.SIGKILL)
    with pytest.raises(Aborted, match="server 0"):
        aggregation.noisy_sum(vectors(5), SMALL)
    assert all(not Path(f"/proc/{process}").exists() for process in ids)
    with pytest.raises(Aborted, match="closed"):
        aggregation.noisy_sum(vectors(5), SMALL)


def test_servers_end_when_their_parent_is_killed_in_the_middle_of_a_sum() -> None:
    code = (
        "import numpy as np; from thresher.privacy.laws.dithered_binomial import DitheredBinomial;"
        "from thresher.federated.spu import SPUAggregation; aggregation = SPUAggregation(1);"
        "print(*aggregation.processes.ids, flush=True);"
        "aggregation.noisy_sum([np.zeros(5000, dtype=np.int64)], DitheredBinomial())"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        ids = parent.stdout.readline().split()
        time.sleep(0.5)  # somewhere in the middle
        parent.kill()
    assert len(ids) == 2
    assert eventually(lambda: not any(map(alive, ids)))


def alive(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"  # an orphan waits for the system to collect it


def test_servers_link_over_tls(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    assert in_support(noise_of_workers([WORKER] * 2, 10, [files(tmp_path, index) for index in range(2)]), SMALL)


@pytest.mark.parametrize("idle", [0, 1])
def test_one_server_that_tosses_fair_coins_is_enough(idle: int, tmp_path: Path) -> None:
    """The other tosses only tails."""
    tails = tmp_path / "tails.py"
    tails.write_text(WORKER.read_text().replace("secrets.token_bytes(", "bytes("))
    assert tails.read_text() != WORKER.read_text()
    assert_moments(noise_of_workers([tails if index == idle else WORKER for index in range(2)], 2000), SMALL)


def noise_of_workers(workers: list[Path], size: int, tls: Sequence[dict[str, str] | None] = (None, None)) -> Integers:
    """What two servers answer to shares of zero."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    share = np.arange(size) - 2**62
    configurations = [
        {"index": index, "addresses": addresses, "protocol": "CHEETAH", "timeout": MINUTES, "tls": tls[index]}
        for index in range(2)
    ]
    with closing(Processes([[PYTHON, "-I", str(worker)] for worker in workers], MINUTES)) as servers:
        servers.ask([json.dumps(configuration).encode() for configuration in configurations])
        servers.ask([b""] * 2)
        header = QUESTION.pack(1, size, SMALL.coins, SMALL.dither)
        answers = servers.ask([header + part.tobytes() for part in (share, -share)])
    assert answers[0][SENT.size :] == answers[1][SENT.size :]
    return np.frombuffer(answers[0], dtype=np.int64, offset=SENT.size)


def files(folder: Path, index: int) -> dict[str, str]:
    return {
        "certificate": str(folder / f"{index}.crt"),
        "key": str(folder / f"{index}.key"),
        "authority": str(folder / "authority.crt"),
    }


def make_certificates(folder: Path) -> None:
    """An authority, and certificates it signed for two servers."""

    def openssl(command: str) -> None:
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)

    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    openssl(f"req -x509 {key} -keyout authority.key -out authority.crt -days 2 -subj /CN=authority")
    for index in range(2):
        openssl(f"req {key} -keyout {index}.key -out {index}.csr -subj /CN=server{index}")
        signed = f"-CA authority.crt -CAkey authority.key -CAcreateserial -out {index}.crt -days 2"
        openssl(f"x509 -req -in {index}.csr {signed}")
