"""Attacks that try to prove a claimed epsilon false, with a confidence bound."""
