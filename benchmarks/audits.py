"""The table of docs/auditing.md: claims of algorithms and of printed formulas, and how much of them was disproved."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.audit.catalogue import Finding, audit_cases, catalogue, verdict


def main() -> None:
    report(list(audit_cases(catalogue(), random_state=0, n_jobs=-1, verbose=1)))


def report(findings: Sequence[Finding]) -> None:
    print("| claim | on | epsilon, delta | epsilon is above | verdict |\n|---|---|---|---|---|")
    for finding in findings:
        result = finding.result
        if finding.case.kind in ("algorithm", "printed"):
            claim = f"{result.claimed_epsilon:g}, {result.delta:g}"
            print(f"| {result.target} | {result.pair} | {claim} | {result.epsilon_lower:.2f} | {verdict(finding)} |")
    questions = [finding for finding in findings if finding.case.kind == "question"]
    closest = [finding.result.epsilon_lower / finding.result.claimed_epsilon for finding in questions]
    broken = [finding.result.violated for finding in findings if finding.case.kind == "broken"]
    fell = sum(finding.result.violated for finding in questions)
    reach = f"their bounds reach {min(closest):.2f} to {max(closest):.2f} of the claims"
    print(f"\nSingle questions: {fell} of {len(questions)} disproved; {reach}.")
    print(f"Broken copies: {sum(broken)} of {len(broken)} caught.")
    print(f"{sum(finding.result.seconds for finding in findings):.0f} seconds in all.")


def smallest() -> None:
    first_of_each_kind = {case.kind: case for case in reversed(catalogue())}
    report(list(audit_cases(list(first_of_each_kind.values()), runs=100, random_state=0)))


if __name__ == "__main__":
    main()
