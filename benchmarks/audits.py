"""The table of docs/auditing.md: claims of algorithms and of printed formulas, and how much of them was disproved."""

from __future__ import annotations

from thresher.audit.catalogue import audit_cases, catalogue, verdict


def main() -> None:
    findings = list(audit_cases(catalogue(), random_state=0, n_jobs=-1, verbose=1))
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


if __name__ == "__main__":
    main()
