"""The planner of a driver without Python, as a process that ``Child.java`` starts.

``python -m skipindex.spark.pruning.child NAME`` answers the questions on its standard
input until that ends.  ``NAME`` is the file of the driver's classes, which must be
those of this version.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
from typing import BinaryIO, Final

from skipindex.errors import first_line
from skipindex.spark.driver import is_own_jar
from skipindex.spark.pruning.java_function import JavaFunction
from skipindex.spark.pruning.query_planner import LOG, SETTINGS, QueryPlanner
from skipindex.spark.pruning.tables import Tables
from skipindex.storage.file_system.names import FOLDER

_QUESTION: Final = struct.Struct(">iii")
"""The number of a question, that of the function, and the bytes of the text."""
_ANSWER: Final = struct.Struct(">ii")
"""The number of the question, and the bytes that follow; -1 is no answer."""
_HELLO: Final = 0


class Server:
    """Answers questions, each in a thread of its own, as they come.

    Args:
        planner: whose functions are asked.
        answers: takes the answers.
    """

    def __init__(self, planner: QueryPlanner, answers: BinaryIO) -> None:
        calls = (planner.answer, planner.files, planner.uses_of, planner.told)
        self._functions = [JavaFunction(call) for call in calls]
        self._answers = answers
        self._lock = threading.Lock()

    def serve(self, questions: BinaryIO) -> None:
        """Answer until there are no more questions."""
        settings = "\n".join(SETTINGS)
        self._write(_HELLO, f"{FOLDER}\n{settings}".encode())
        while len(head := questions.read(_QUESTION.size)) == _QUESTION.size:
            number, function, length = _QUESTION.unpack(head)
            text = questions.read(length)
            if len(text) < length:
                return  # the driver was killed while it asked
            threading.Thread(
                target=self._answer, args=(number, function, text.decode()), daemon=True
            ).start()

    def _answer(self, number: int, function: int, text: str) -> None:
        answer = None
        try:
            answer = self._functions[function].apply(text)
        except Exception as error:  # noqa: BLE001 - the driver reads all files
            LOG.warning("a question of the driver failed: %s", first_line(error))
        finally:
            self._write(number, answer)

    def _write(self, number: int, answer: bytes | None) -> None:
        length = -1 if answer is None else len(answer)
        with self._lock:
            self._answers.write(_ANSWER.pack(number, length) + (answer or b""))
            self._answers.flush()


def main(jar: str) -> int:
    """Serve the driver that has these classes; 1 if they are of another version."""
    if not is_own_jar(jar):
        sys.stderr.write(
            f"skipindex: {jar} is of another version than {sys.executable} has "
            "(accepted: the settings of skipindex spark-conf, of one installation)\n"
        )
        return 1
    # What is printed by mistake is no answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Server(QueryPlanner(Tables()), answers).serve(sys.stdin.buffer)
    os._exit(0)  # plans that are being made are for no one any more


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
