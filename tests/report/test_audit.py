"""The page of an audit says what was found, and in which group."""

from html.parser import HTMLParser

import pytest

from thresher.audit.catalogue import audit_cases, find_cases, membership_examples
from thresher.audit.page import audit_page


@pytest.fixture(scope="module")
def findings():
    names = ["gradient", "label-ldp-iht-printed", "moments-unclipped", "moments-quiet"]
    cases = [case for name in names for case in find_cases(name)]
    return list(audit_cases(cases, runs=200, random_state=0))


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.inside = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        self.inside = tag == "td"

    def handle_data(self, data):
        if self.inside:
            self.rows[-1].append(data)

    def handle_endtag(self, tag):
        self.inside = False


def test_every_finding_has_a_row_and_a_bar(findings):
    text = audit_page(findings, 0.99)
    reader = Cells()
    reader.feed(text)
    rows = [row for row in reader.rows if row]
    assert [row[0] for row in rows] == [finding.case.name for finding in findings]
    for row, finding in zip(rows, findings, strict=True):
        assert f"{finding.result.claimed_epsilon:.3g}" in row
        assert f"{finding.result.epsilon_lower:.3g}" in row
        assert f"{finding.result.right} of {finding.result.right + finding.result.wrong}" in row
    assert text.count("<svg") == 3  # one for each group
    for finding in findings:
        assert f"{finding.case.name}: {finding.case.pair.name}" in text


def test_the_summary_counts_what_fell(findings):
    text = audit_page(findings, 0.99)
    assert "2 claims of this library were attacked: none disproved." in text
    assert "1 of 1 formulas as printed were disproved." in text
    assert "1 of 2 broken copies were caught." in text
    assert "NOT CAUGHT" in text  # 200 runs are too few for a little less noise
    assert "With confidence 0.99, no true claim on this page is called disproved." in text


def test_membership_is_drawn_with_its_bound(findings):
    text = audit_page(findings, 0.99, membership_examples(random_state=0))
    assert "Membership inference with skewed priors" in text
    assert text.count("<svg") == 4
    assert "privacy bound" in text
    assert "right at 1:100" in text
