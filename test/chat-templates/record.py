"""`python3 test/chat-templates/record.py` records what Python renders of each expression.

`test/unit/engine/jinja-expressions.json` maps templates to their texts, or to `["error", type]`.
A new template may have any value there before the script runs.
"""

import json
import pathlib

from environment import create_environment, render

PATH = pathlib.Path(__file__).parent.parent / "unit/engine/jinja-expressions.json"
VARIABLES = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "index": 0}]},
    ],
    "tools": None,
    "price": 2.5,
    "keys": {"items": [1, 2], "b": {"c": None}, "é": True},
}


def main():
    environment = create_environment()
    results = {}
    for source in json.loads(PATH.read_text()):
        result = render(environment, source, VARIABLES)
        results[source] = result.get("text", ["error", result.get("error")])
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in results.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
