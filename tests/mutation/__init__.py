"""Mutation testing: `make mutants` changes one thing at a time in copies of the tree, and lists what no test notices.

- `slips` finds what can be changed in a Python file; `slips.toml` has changes of scripts, units and configurations.
- `sample` draws some of them, more of what changed lately; `equivalent.toml` marks those that change no behaviour.
- `coverage_map` knows which tests run a line: it runs each test module once with coverage, as `coverage.toml` says.
- `selection` orders the tests of a slip, nearest first; `trial` applies the slip to a copy and runs them.
- `recorder` and `ordering` are plugins of pytest for these runs.

docs/decisions/mutation.md says why this isn't mutmut or cosmic-ray.
"""
