"""The planner as a child process of a driver without Python; see ``Child.java``.

``python -m skipindex.spark.pruning.child NAME`` reads questions from descriptor 3 until
they end, and writes answers to descriptor 4.  ``NAME`` is the file of the driver's
classes, which must be those of this version.
"""

from __future__ import annotations

import logging
import os
import struct
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, Final

from skipindex.errors import first_line
from skipindex.spark.driver import is_own_jar
from skipindex.spark.pruning.java_function import JavaFunction
from skipindex.storage.file_system.names import FOLDER

if TYPE_CHECKING:  # the driver waits a second for the sign, which comes before imports
    from skipindex.spark.pruning.query_planner import QueryPlanner

_LOG: Final = logging.getLogger("skipindex")
_QUESTIONS: Final = 3
"""The descriptor that questions come from."""
_ANSWERS: Final = 4
"""The descriptor of answers; nothing else writes to it."""
_SIGN: Final = b"skipindex"
"""The first bytes of a planner."""
_QUESTION: Final = struct.Struct(">ii")
"""The number of a question, and the bytes of its text."""
_ANSWER: Final = struct.Struct(">ii")
"""The number of the question, and the bytes that follow; -1 is no answer."""
_HELLO: Final = 0


class Server:
    """Answers questions, each in a thread of its own, as they come.

    Args:
        planner: is asked.
        settings: names of the settings that a question tells.
        answers: takes the answers.
    """

    def __init__(
        self, planner: QueryPlanner, settings: Sequence[str], answers: BinaryIO
    ) -> None:
        self._hello = "\n".join((FOLDER, *settings)).encode()
        self._function = JavaFunction(planner.answer)
        self._answers = answers
        self._lock = threading.Lock()

    def serve(self, questions: BinaryIO) -> None:
        """Answer until there are no more questions."""
        self._write(_HELLO, self._hello)
        while len(head := questions.read(_QUESTION.size)) == _QUESTION.size:
            number, length = _QUESTION.unpack(head)
            text = questions.read(length)
            if len(text) < length:
                return  # the driver was killed while it asked
            threading.Thread(
                target=self._answer, args=(number, text.decode()), daemon=True
            ).start()

    def _answer(self, number: int, text: str) -> None:
        answer = None
        try:
            answer = self._function.apply(text)
        except Exception as error:  # noqa: BLE001 - the driver reads all files
            _LOG.warning("a question of the driver failed: %s", first_line(error))
        finally:
            self._write(number, answer)

    def _write(self, number: int, answer: bytes | None) -> None:
        length = -1 if answer is None else len(answer)
        with self._lock:
            self._answers.write(_ANSWER.pack(number, length) + (answer or b""))
            self._answers.flush()


def main(jar: str) -> int:
    """Serve the driver that has these classes; 1 if they are of another version."""
    os.set_inheritable(_QUESTIONS, False)
    os.set_inheritable(_ANSWERS, False)
    questions, answers = os.fdopen(_QUESTIONS, "rb"), os.fdopen(_ANSWERS, "wb")
    answers.write(_SIGN)
    answers.flush()
    if not is_own_jar(jar):
        sys.stderr.write(
            f"skipindex: {jar} and skipindex in {sys.executable} have different "
            "versions (accepted: the settings of skipindex spark-conf, of one "
            "installation)\n"
        )
        return 1
    from skipindex.spark.pruning import query_planner, tables  # noqa: PLC0415 - as above
    from skipindex.table.queries import flush  # noqa: PLC0415 - as above

    planner = query_planner.QueryPlanner(tables.Tables())
    Server(planner, query_planner.SETTINGS, answers).serve(questions)
    flush()
    os._exit(0)  # plans that are being made are for no one any more


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
