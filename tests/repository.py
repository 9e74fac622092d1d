"""Where things lie in the repository, whichever folder a test is in."""

from pathlib import Path

__all__ = ["BENCHMARKS", "DOCS", "EXAMPLES", "ROOT", "TESTS"]

ROOT = Path(__file__).parent.parent
BENCHMARKS, DOCS, EXAMPLES, TESTS = (ROOT / name for name in ("benchmarks", "docs", "examples", "tests"))
