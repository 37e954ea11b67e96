"""Requests and answers of a peer process: one JSON document a line on stdin, one on stdout; it ends with stdin, so no test
run leaves it behind."""

import json
import os
import sys


def serve(answer):
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
