"""Add vectors of docs/drawing-protocol.md, rows, bytes, and what Python draws from them, for laws
that have none yet: those that are published stay as they are.

Run once for a new law: python tests/golden/write_vectors.py
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from unit.collect import vectors

LEFT_OUT = {
    *("pattern table, direct", "many categories"),  # thousands of weights
    "several blocks",  # made of others
}


def main() -> None:
    path = Path(__file__).parent / "drawing" / "vectors.json"
    golden = json.loads(path.read_text(encoding="utf-8"))
    published = {one["name"] for one in golden}
    golden += [
        {
            "name": name,
            "record": vectors.record_of(mechanism),
            "vectors": vectors.vectors(mechanism, 4 if name.endswith("twelve") else 10, seed=15),
        }
        for name, mechanism in vectors.mechanisms().items()
        if name not in LEFT_OUT | published
    ]
    path.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
    numbers = path.with_name("numbers.json")
    if not numbers.exists():
        numbers.write_text(vectors.of_numbers(40, seed=15) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
