"""Messages about a service: its start, its tokens, its answers, and asking one."""

from __future__ import annotations

from typing import Final

from kgbench.core.message import Message

SERVICE: Final[dict[str, Message]] = {
    # --- starting ---
    "KGB701": Message("The extra that `kgbench serve` needs is not installed.", "`pip install 'kgbench[serve]'`."),
    "KGB702": Message(
        "`kgbench serve` would be reached from elsewhere, and it has no token.",
        "`kgbench token new NAME --data DIR`, or listen on 127.0.0.1.",
    ),
    "KGB703": Message("`kgbench serve` cannot listen there.", "Give another `--host` or `--port`."),
    "KGB704": Message("Another `kgbench serve` works on this folder.", "End it, or give another `--data`."),
    "KGB705": Message("The folder of a service cannot be used.", "Give another with `--data`."),
    "KGB706": Message(
        "A token cannot have that name, has it already, or is not there.",
        "`kgbench token list` shows all names.",
    ),
    "KGB707": Message("`--rate` cannot be read.", "Write for example `--rate 60/min`; units are s, min, h, day."),
    # --- answers ---
    "KGB710": Message(
        "A service answers nobody without a good token: none was sent, it is unknown, or it was withdrawn.",
        "Set KGBENCH_TOKEN to one that `kgbench token new` made; `kgbench run --resume last` goes on.",
    ),
    "KGB711": Message("More submissions than the token's rate allows.", "Wait as long as Retry-After says."),
    "KGB712": Message("A queue of submissions is full.", "Wait as long as Retry-After says."),
    "KGB713": Message("Too many requests of one token wait at once.", "Poll without `wait`, or stream a batch."),
    "KGB714": Message("A request has a wrong or missing field.", "It is named; /openapi.json has the form."),
    "KGB715": Message("A request did not arrive whole, or not in time.", "Send it at once."),
    "KGB716": Message("A service has no such thing, or it is somebody else's.", "/openapi.json lists all addresses."),
    "KGB717": Message(
        "A page of somebody else, or a foreign name, asks a service that listens on loopback without tokens.",
        "Ask it as 127.0.0.1 or localhost.",
    ),
    "KGB718": Message("A request is larger than the service takes.", "Submit fewer kernels at once."),
    "KGB719": Message(
        "A problem is another version on the service.", "Use the same version of kgbench as the service."
    ),
    "KGB721": Message("The service cannot write its queue.", "Make room where its `--data` lies; nothing was taken."),
    "KGB722": Message("The service failed on a request.", "What it printed on stderr says why; tell us."),
    # --- asking ---
    "KGB730": Message("`--server` is no address.", "Write `http://HOST:PORT` or `https://HOST:PORT`."),
    "KGB731": Message(
        "No service of kgbench answers there.", "Look at the address; `kgbench run --resume last` goes on later."
    ),
    "KGB732": Message("`--server` with something that no service judges.", "Leave what is named out, or `--server`."),
    "KGB733": Message("The service cannot judge any more.", "Its operator should look at what it printed."),
}
"""Messages of the service, by number."""
