"""A table as it comes out of a hospital: a mark at its start, commas in names, mixed types, dates, gaps, torn lines."""

from __future__ import annotations

import numpy as np

__all__ = ["PLANTED", "SCHEMA", "write_messy"]

PLANTED = {"name": "Zaphod-Beeblebrox", "id": "id-8675309", "number": "918273.645", "category": "kuru-rarissima"}
"""What must never be seen again: one person's name, id, income and diagnosis, each in one row of the table."""

SCHEMA = """
[columns.patient]
role = "person"

[columns.name]
role = "ignore"

[columns.age]
bounds = [0, 110]
typical = 50
unit = "years"
missing = "indicator"

[columns.income]
bounds = [0, 100000]
typical = 30000
unit = "euros"
outside = "missing"

[columns."blood pressure"]
bounds = [50, 250]
typical = 120
unit = "mmHg"

[columns.admitted]
bounds = [2015-01-01, 2024-12-31]

[columns.diagnosis]
categories = ["asthma", "diabetes", "none"]
base = "none"
undeclared = "other"
missing = "indicator"

[columns.stay]
role = "target"
bounds = [0, 60]
missing = 10
unit = "days"
"""

HEADER = "patient,name,age,income,blood pressure,admitted,diagnosis,stay\n"


def write_messy(path, rows, seed=0):
    """Write ``rows`` rows; about 1 % are torn, and every column has cells that are not what they should be."""
    rng = np.random.default_rng(seed)
    age, pressure = rng.integers(0, 100, rows), rng.normal(130, 20, rows).round(1)
    income = rng.integers(0, 90_000, rows)
    days = np.datetime64("2015-01-01") + rng.integers(0, 3650, rows)
    sick = rng.choice(["asthma", "diabetes", "none"], rows, p=[0.2, 0.3, 0.5])
    stay = 8 + 0.1 * (age - 50) + 6 * (sick == "diabetes") + rng.normal(0, 2, rows)
    bad = rng.random((rows, 7))
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        file.write(HEADER)
        for i, (a, m, p, d, s, y, b) in enumerate(
            zip(age.tolist(), income.tolist(), pressure.tolist(), days.astype(str).tolist(), sick.tolist(),
                stay.round(2).tolist(), bad.tolist(), strict=True)
        ):  # fmt: skip
            if b[0] < 0.01:
                file.write("torn,line\r\n" if b[0] < 0.005 else "p0,a,1,2,3,2020-01-01,none,5,one,too,many\n")
                continue
            a = "unknown" if b[1] < 0.02 else "" if b[1] < 0.04 else 999 if b[1] < 0.05 else f" {a} "
            m = "" if b[2] < 0.1 else -1 if b[2] < 0.12 else m
            p = "120/80" if b[3] < 0.03 else "NaN" if b[3] < 0.05 else p
            d = "never" if b[4] < 0.02 else "0000-00-00" if b[4] < 0.03 else f"{d} 12:30:00" if b[4] < 0.5 else d
            s = "Asthma?" if b[5] < 0.02 else "" if b[5] < 0.05 else s
            y = "" if b[6] < 0.01 else y
            file.write(f'p{i},"Doe, ""Jo""\n{i}",{a},{m},{p},{d},{s},{y}\n')
        file.write(
            f"{PLANTED['id']},{PLANTED['name']},{PLANTED['number']},{PLANTED['number']},{PLANTED['number']},"
            f"2020-02-02,{PLANTED['category']},{PLANTED['number']}\n"
        )
