# What one does every day. Each recipe is a plain command that also works without just.
# `.venv/bin/just` lists them; `sh scripts/setup dev,docs` makes .venv with all they need.

bin := ".venv/bin"

# List the recipes.
default:
    @just --list

# Format the code and put right what ruff can.
fmt:
    {{bin}}/ruff format .
    {{bin}}/ruff check --fix .

# Style, types, spelling, and the lock.
lint:
    {{bin}}/ruff check .
    {{bin}}/ruff format --check .
    {{bin}}/mypy
    {{bin}}/codespell
    {{bin}}/uv lock --check

# The tests that every change runs.
test:
    {{bin}}/pytest

# All tests, with the ones that take long by nature.
test-all:
    {{bin}}/pytest
    {{bin}}/pytest -m slow

# The default and the slow tests with coverage: half as long again to twice as long. A gap without a reason fails.
coverage:
    {{bin}}/pytest -m "not weekly" --cov --cov-report=
    {{bin}}/python scripts/coverage_gaps.py

# Tests that no change runs, and ten times as many examples of every property.
weekly:
    RECORDS=20000 {{bin}}/pytest -m weekly
    {{bin}}/pytest -m hypothesis --hypothesis-profile weekly

# kill -9 at two hundred moments of every command that writes, twice, and of the server.
kill:
    KILLS=200 {{bin}}/pytest -m "" -k "killed" tests/cli/test_faults.py tests/unit/ledger tests/unit/collect

# A million crafted inputs to the parsers, a hundred thousand requests to the collector: an hour and more.
fuzz inputs="1000000":
    {{bin}}/python tests/fuzzing.py --inputs {{inputs}}
    REQUESTS=100000 {{bin}}/pytest -m slow -n 0 -k "posted_breaks" tests/unit/collect/test_collector.py

# A million records of laws of every family, in Chromium and in QuickJS, from the bytes that Python drew.
records count="1000000":
    RECORDS={{count}} {{bin}}/pytest -m "slow or weekly" -k "same_bytes or thousands" tests/unit/collect

# Three hundred people clicking in Chromium, twenty thousand posting: what is estimated holds the truth.
respondents count="300":
    RESPONDENTS={{count}} {{bin}}/pytest -m slow -n 0 -s tests/statistical/test_collected_answers.py

# A hundred pairs of opposite answers through the page: when their requests start; ten minutes.
opposite:
    PAIRS=100 {{bin}}/pytest -m slow -n 0 -s -k "starts_tells_nothing" tests/unit/collect/test_in_a_browser.py

# Ten thousand changes of numbers in records of every family, counted by what came of them.
altered:
    ALTERED=700 {{bin}}/pytest -n 0 -s -m slow tests/cli/test_altered_records.py

# A thousand audits of honest mechanisms of every family: a few minutes.
audits:
    AUDITS=77 {{bin}}/pytest -n 0 -s -m weekly -k "every_family" tests/statistical/test_audit.py

# Every kind of hard design against what is demanded of it, and 300 designs of every kind: most of an hour; fails at the end if one missed.
hard:
    {{bin}}/python benchmarks/bench_optimal.py --hard || missed=1; \
    {{bin}}/python benchmarks/bench_design.py --random 300 && exit ${missed:-0}

# Plant one-line defects in a copy of the source, one by one: a few tests each have to notice; some minutes.
defects:
    {{bin}}/python tests/planted_defects.py --unchanged

# Build the site into site/; a warning is an error.
docs:
    {{bin}}/mkdocs build --strict

# The speeds in docs/figures.md, measured anew; tables and plots in figures/. Half an hour.
figures:
    {{bin}}/python benchmarks/report.py --measure figures

# Each benchmark by itself.
bench:
    {{bin}}/python benchmarks/bench_commands.py
    {{bin}}/python benchmarks/bench_peers.py
    {{bin}}/python benchmarks/bench_optimal.py
    {{bin}}/python benchmarks/bench_audit.py
    {{bin}}/python benchmarks/bench_collect.py
    {{bin}}/python benchmarks/bench_page.py
    {{bin}}/python benchmarks/bench_studio.py
    {{bin}}/python benchmarks/bench_forms.py
    {{bin}}/python benchmarks/bench_prediction.py
    {{bin}}/python benchmarks/bench_design.py
    {{bin}}/python benchmarks/bench_lambda.py
    {{bin}}/python benchmarks/bench_frontier.py
    {{bin}}/python benchmarks/bench_randomize.py
    {{bin}}/python benchmarks/bench_numbers.py
    {{bin}}/python benchmarks/bench_files.py --rows 0.1 1
    {{bin}}/python benchmarks/bench_wide.py
    {{bin}}/python benchmarks/bench_engines.py
    {{bin}}/python benchmarks/bench_synthesize.py
    {{bin}}/python benchmarks/bench_estimate.py
    {{bin}}/python benchmarks/bench_results.py

# kill -9 at twenty moments of releases in parts, plain and shuffled; a minute or two.
parts:
    PART_KILLS=20 {{bin}}/pytest -k "whatever_moment" tests/unit/release/test_parts.py

# Dask and Spark (which needs Java) as they are, with workers killed; some minutes. First
# .venv/bin/uv pip install distributed pyspark==4.3.0, and then again with pyspark==3.5.9
engines:
    ENGINES=1 PYTHONPATH=src:tests {{bin}}/pytest -n 0 tests/unit/engines
