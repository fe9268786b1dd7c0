"""./check kernel.py: asks the referee whether a kernel is correct, and how fast it is. The number of checks is limited.

Exit code 0: correct; 1: not correct; 2: nothing was asked; 3: there is nobody to ask; 4: the limit is reached.
"""

import json
import os
import socket
import sys

SOCKET = ""
LARGEST = 1 << 20


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print("usage: ./check kernel.py", file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], "rb") as file:
            source = file.read(LARGEST + 1)
    except OSError as error:
        print(f"check: {sys.argv[1]} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    if len(source) > LARGEST:
        print(f"check: {sys.argv[1]} is larger than {LARGEST} bytes", file=sys.stderr)
        return 2
    try:
        answer = ask(source)
    except (OSError, ValueError) as error:
        print(f"check: nobody answers: {error}", file=sys.stderr)
        return 3
    print(answer["words"])
    return int(answer["code"])


def ask(source):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.connect(SOCKET)
        try:
            channel.sendall(source)
            channel.shutdown(socket.SHUT_WR)
        except BrokenPipeError:
            # It was refused before it was read to its end; the answer says why.
            pass
        with channel.makefile("rb") as lines:
            return json.loads(lines.read().decode())


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
