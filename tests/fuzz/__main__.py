"""Fuzz one target, or all in turn: `python -m tests.fuzz [TARGET] [--seconds 60] [--seed 1]`.

An input that crashes, hangs or takes too much memory is written to build/fuzz/TARGET/.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["localidades_api"]):
    from tests.fuzz.targets import targets

_FOLDER = Path("build/fuzz")
_LIMITS = ("-rss_limit_mb=1500", "-timeout=20", "-max_len=20000", "-print_final_stats=1")


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=sorted(targets()))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d")))
    chosen = parser.parse_args()
    if chosen.target:
        _fuzz(chosen.target, chosen.seconds, chosen.seed)
    sys.stderr.write(f"Seed: {chosen.seed}\n")
    command = [sys.executable, "-m", "tests.fuzz"]
    options = ["--seconds", str(chosen.seconds), "--seed", str(chosen.seed)]
    # libFuzzer ends its process.
    failed = [name for name in targets() if subprocess.call([*command, name, *options])]
    sys.exit(f"These targets failed: {', '.join(failed)}" if failed else 0)


def _fuzz(name: str, seconds: int, seed: int) -> None:
    target = targets()[name]

    def read(data: bytes) -> None:
        target.read(data)

    corpus = _FOLDER / name / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(data)
    prefix = f"-artifact_prefix={_FOLDER / name}/"
    atheris.Setup([sys.argv[0], str(corpus), prefix, f"-max_total_time={seconds}", f"-seed={seed}", *_LIMITS], read)
    atheris.Fuzz()


if __name__ == "__main__":
    _main()
