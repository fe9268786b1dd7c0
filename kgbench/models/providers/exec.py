"""Any agent or script as a model: a command that gets the prompt on its standard input and a folder to work in."""

from __future__ import annotations

import importlib
import os
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kgbench.agents.work import Agent, Closed, Confine, CouldNotStart
from kgbench.core.types import Result
from kgbench.llm.conversation import ModelClient, NotAnswered, Question, Reply, Stop
from kgbench.models.provider import ModelError

FORM: Final = "exec:COMMAND"
SUMMARY: Final = "an agent or script: the prompt on its standard input, a folder to work in"


def provider(argument: str | None, alias: str | None = None) -> AgentClient:
    """Raises ModelError when there is no command or it cannot be split into words."""
    if argument is None or not argument.strip():
        raise ModelError(
            "KGB550", "--model exec: name the command after a colon, for example --model 'exec:sh my_agent.sh'"
        )
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise ModelError(
            "KGB551",
            f"--model exec:{argument}: the command cannot be split into words: {error}. Quotes work as in a shell; for "
            "pipes and variables write --model \"exec:sh -c '…'\"",
        ) from None
    return AgentClient(argument, tuple(words), alias=alias)


class AgentClient(ModelClient):
    """Starts the command once per question. May be asked from several threads at once."""

    endpoint = "exec"
    is_agent = True

    def __init__(self, command: str, words: Sequence[str], confine: Confine = "best", alias: str | None = None) -> None:
        self.model = alias or f"exec:{command}"
        self.model_id = command
        self._words = words
        self._confine = confine
        self._lock = threading.Lock()
        self._agents: set[Agent] = set()
        self._closed = False

    def ready(self) -> None:
        """Raises ModelError when the program is not there."""
        if not sys.platform.startswith("linux"):
            raise ModelError("KGB553", f"--model {self.model}: agents run on Linux only; generate on a Linux machine")
        program = self._words[0]
        if shutil.which(program) is None:
            step = "install it, or write its full path"
            if os.path.isfile(program):
                step = f"it is a file that is not executable: write what runs it, as in 'exec:sh {program}'"
            raise ModelError("KGB552", f"--model {self.model}: there is no program {program!r} on PATH; {step}")

    def ask(self, question: Question) -> Reply:
        """One agent's whole work. Raises NotAnswered where its program cannot be started."""
        argv = self._argv()
        files = [word for word in argv if os.path.isabs(word) and os.path.isfile(word)]
        agent = Agent(argv, question, _words_for(question), files, self._confine)
        self._begin(agent)
        try:
            agent.work()
        except Closed as error:
            raise NotAnswered(str(error)) from None
        except CouldNotStart as error:
            # It is there, as ``ready`` saw; then what is hidden from it is the likeliest cause.
            words = f"{self._words[0]} could not be started: {error}; where {agent.confined}, show it with --agent-sees"
            raise NotAnswered(words) from None
        except OSError as error:
            raise NotAnswered(f"the agent had no place to work in: {error}") from None
        finally:
            with self._lock:
                self._agents.discard(agent)
        return self._reply(agent)

    def close(self) -> None:
        """End all agents that are at work."""
        with self._lock:
            self._closed = True
            for agent in self._agents:
                agent.close()

    def _begin(self, agent: Agent) -> None:
        with self._lock:
            if self._closed:
                raise NotAnswered("the run was ended")
            self._agents.add(agent)

    def _argv(self) -> list[str]:
        """The command with full paths, since it is started elsewhere: its program, and files that it names."""
        program = shutil.which(self._words[0])
        if program is None:
            raise NotAnswered(f"there is no program {self._words[0]!r} any more")
        others = (str(Path(word).absolute()) if os.path.isfile(word) else word for word in self._words[1:])
        return [os.path.abspath(program), *others]

    def _reply(self, agent: Agent) -> Reply:
        was_killed = agent.exit_code is None or agent.exit_code < 0
        detail = agent.ended_for or ("" if agent.exit_code == 0 else _ending(agent))
        return Reply(
            text=agent.stdout,
            model_id=self.model_id,
            stop=Stop.CUT_OFF if agent.ended_for or was_killed else Stop.END,
            seconds=agent.seconds,
            detail=detail,
            code=agent.kernel if agent.kernel.strip() else None,
            facts=agent.facts,
        )


def _ending(agent: Agent) -> str:
    """How a program ended that did not end well, with its last line."""
    lines = [line.strip() for line in agent.stderr.splitlines() if line.strip()]
    how = "ended without output" if agent.exit_code is None else f"exit code {agent.exit_code}"
    return f"{how}: {lines[-1][:300]}" if lines else how


def _words_for(question: Question) -> Callable[[Result, str], str]:
    # Imported when an agent is asked: prompts need more than finding out what there is.
    feedback = importlib.import_module("kgbench.prompts.feedback")
    return lambda result, code: str(feedback.verdict_words(question.problem, result, code=code, peaks=question.peaks))
