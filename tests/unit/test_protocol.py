"""Frames over real sockets: what is sent arrives, what is broken or late is an error and never a hang."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest

from kgbench.harness.wire.protocol import (
    MOST_BYTES,
    MOST_DEPTH,
    MOST_TOLD_BYTES,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    ProtocolError,
    decode_scalar,
    encode_scalar,
    pair,
)


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    left, right = pair()
    with left, right:
        yield Channel(left, accepts_fds=True), right


def test_a_frame_arrives_whole_and_in_order(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    sender = Channel(other)
    sender.send({"a": "x" * 20_000})
    sender.send({"b": 2})
    assert channel.receive(1.0) == {"a": "x" * 20_000}
    assert channel.receive(1.0) == {"b": 2}


def test_descriptors_arrive_with_their_own_frame(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    read_end, write_end = os.pipe()
    sender = Channel(other)
    sender.send({"n": 1})
    sender.send({"n": 2}, [write_end])
    assert channel.receive_with_fds(1.0) == ({"n": 1}, [])
    message, fds = channel.receive_with_fds(1.0)
    os.write(fds[0], b"through")
    assert (message, os.read(read_end, 7)) == ({"n": 2}, b"through")
    for fd in (read_end, write_end, *fds):
        os.close(fd)


def test_a_worker_cannot_hand_descriptors_to_the_referee() -> None:
    left, right = pair()
    with left, right, open(os.devnull) as handed:
        Channel(right).send({"n": 1}, [handed.fileno()])
        before = len(os.listdir("/proc/self/fd"))
        assert Channel(left).receive(1.0)["n"] == 1
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    "junk",
    [
        struct.pack("<I", MOST_BYTES + 1),
        struct.pack("<I", 3) + b"{{{",
        struct.pack("<I", 2) + b"[]",
        struct.pack("<I", 9) + b'{"a":NaN}',
        struct.pack("<I", 2) + b"\xff\xfe",
        struct.pack("<I", 20_000) + b"[" * 20_000,
    ],
    ids=["too long", "no JSON", "no object", "NaN", "no UTF-8", "too deep"],
)
def test_junk_is_a_protocol_error(ends: tuple[Channel, socket.socket], junk: bytes) -> None:
    channel, other = ends
    other.setblocking(False)
    other.send(junk)
    with pytest.raises(ProtocolError):
        channel.receive(1.0)


def test_silence_and_half_frames_time_out(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(struct.pack("<I", 10) + b"half")
    with pytest.raises(ChannelTimeout):
        channel.receive(0.05)


def test_the_end_is_told(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.close()
    with pytest.raises(ChannelClosed):
        channel.receive(1.0)
    with pytest.raises(ChannelClosed):
        channel.send({"n": 1})


@pytest.mark.parametrize("value", [1, "N", None, True, 0.1, float("inf"), 1 - 2.5j])
def test_scalars_survive(value: object) -> None:
    assert decode_scalar(encode_scalar(value)) == value


@pytest.mark.parametrize(("depth", "taken"), [(32, True), (33, False), (900, False)])
def test_what_a_worker_says_is_not_deep(depth: int, taken: bool) -> None:
    """A referee that wrote it out would end by its own recursion."""
    left, right = pair()
    with left, right:
        body = b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
        right.sendall(struct.pack("<I", len(body)) + body)
        channel = Channel(left, limit_bytes=MOST_TOLD_BYTES, limit_depth=MOST_DEPTH)
        if taken:
            assert "a" in channel.receive(1.0)
        else:
            with pytest.raises(ProtocolError, match="32 lists and objects in each other"):
                channel.receive(1.0)
