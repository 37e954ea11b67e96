#!/usr/bin/env python3
"""Reads and writes Delta tables as other software does, for the tests.

One JSON request a line on stdin, one JSON answer a line on stdout; it ends with stdin, so no test run leaves it behind.

  {"do": "rows", "with": "deltalake" | "duckdb", "table": …, "options": {…}, "version": …}
                                                        the rows as canonical text, sorted (content.py)
  {"do": "write" | "delete" | "compact" | …, …}         the functions of writers.py with their arguments
"""

import json
import os
import sys

from content import canonical_rows
from readers import READERS
from writers import WRITERS


def answer(request):
    do = request.pop("do")
    if do == "rows":
        return canonical_rows(READERS[request.pop("with")](**request))
    return WRITERS[do](**request)


def main():
    # Answers keep the real stdout; whatever a library prints goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            reply = {"ok": answer(json.loads(line))}
        except Exception as error:  # the test decides what an error means
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reply, ensure_ascii=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
