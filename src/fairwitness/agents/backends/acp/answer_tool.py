"""Lets an agent submit its answer with a tool: writes the tool server into its home and reads the answer from there."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from acp.schema import McpServerStdio

from fairwitness.agents.backends.acp import answer_server
from fairwitness.agents.base import AnswerForm
from fairwitness.errors import FairWitnessError
from fairwitness.kit import json_text
from fairwitness.kit.files import read_given, read_plain, replace_file
from fairwitness.kit.safe_open import OpenFolder
from fairwitness.sandbox import scratch
from fairwitness.sandbox.private_folders import PrivateFolders

_LIMIT = 4 << 20
_ANSWER = "submit/answer.json"


class AnswerTool:
    """The answer tool of one session."""

    def __init__(self, form: AnswerForm, own: PrivateFolders) -> None:
        self._folder = Path(own.folder)
        script = read_given(Path(answer_server.__file__), limit=_LIMIT)
        replace_file(self._folder, "submit/server.py", script)
        replace_file(self._folder, "submit/schema.json", json.dumps(form.schema).encode())
        words = [str(self._folder / name) for name in ("submit/server.py", "submit/schema.json", _ANSWER)]
        self.server = McpServerStdio(
            name=answer_server.SERVER, command=scratch.interpreter(), args=["-I", "-S", *words], env=[]
        )
        """The command with which the agent starts the server inside its sandbox."""

    def take_answer(self) -> dict[str, Any] | None:
        """Return the answer submitted since the last call; the agent can write the file, so it is only a claim."""
        try:
            answer = json_text.parse(read_plain(self._folder, _ANSWER, limit=_LIMIT).decode())
        except (FairWitnessError, ValueError):
            return None
        finally:
            with contextlib.suppress(FairWitnessError, OSError), OpenFolder("remove", self._folder, _ANSWER) as place:
                os.unlink(place.name, dir_fd=place.folder)
        return answer if isinstance(answer, dict) else None
