#!/usr/bin/env python3
"""Reads and writes Delta tables as other software does, for the tests: a peer process (serving.py).

  {"do": "rows", "with": "deltalake" | "duckdb", "table": …, "options": {…}, "version": …}
                                                        the rows as canonical text, sorted (content.py)
  {"do": "write" | "delete" | "compact" | …, …}         the functions of writers.py with their arguments
"""

from content import canonical_rows
from readers import READERS
from serving import serve
from writers import WRITERS


def answer(request):
    do = request.pop("do")
    if do == "rows":
        return canonical_rows(READERS[request.pop("with")](**request))
    return WRITERS[do](**request)


if __name__ == "__main__":
    serve(answer)
