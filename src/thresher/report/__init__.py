"""Pages that stand alone: plots as SVG, no network, readable on a phone and on paper."""
