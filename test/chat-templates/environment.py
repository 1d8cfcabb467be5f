"""The environment in which transformers renders chat templates, with jinja2 alone.

`python3 environment.py` reads lines of JSON, `{"template": text, "variables": object}`, and answers
each with a line, `{"text": text}` or `{"error": type, "message": text}`.
"""

import functools
import json
import sys
from datetime import datetime

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox
import jinja2.utils


class Generation(jinja2.ext.Extension):
    """The tag `generation`, which encloses the text of the assistant."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_write"), [], [], body).set_lineno(line)

    def _write(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def create_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    return environment


@functools.lru_cache(maxsize=16)
def compile_template(environment, template):
    return environment.from_string(template)


def render(environment, template, variables):
    """Returns the text of a template, or the type and the message of its error."""
    try:
        return {"text": compile_template(environment, template).render(**variables)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error)}


def main():
    environment = create_environment()
    for line in sys.stdin:
        task = json.loads(line)
        result = render(environment, task["template"], task["variables"])
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
