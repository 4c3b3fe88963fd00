"""Roaring bitmaps of very many values in portable bytes, in one numpy pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skipindex.expressions.arrays import Bits, Ints, Mask, Words, starts
from skipindex.storage.bitmaps import ARRAY_MAX, BITS_SIZE, NO_RUNS, RUNS


@dataclass(frozen=True, slots=True)
class Packed:
    """The bitmaps of many values: that of value ``i`` has ``lengths[i]`` bytes."""

    blob: Bits
    offsets: Ints
    lengths: Ints


def pack_postings(keys: Words, n_values: int) -> Packed:
    """The bytes of the bitmaps of all values in one pass.

    ``keys`` are ``value << 32 | row``, sorted and distinct; values are below
    ``n_values``, and one without a row has length 0.
    """
    offsets, lengths = np.zeros((2, n_values), np.int64)
    if not len(keys):
        return Packed(np.empty(0, np.uint8), offsets, lengths)
    c = _containers(keys)
    end = np.cumsum(c.pad + c.head + c.body + (c.pad + c.head + c.body & 1))
    start = end - (c.head + c.body + (c.pad + c.head + c.body & 1))
    payload = start[c.owner] + c.head[c.owner] + c.place
    blob = np.zeros(int(end[-1]), np.uint8)
    _write_headers(blob, c, start, payload)
    _write_containers(blob, c, keys, payload)
    offsets[c.value] = start
    lengths[c.value] = c.head + c.body
    return Packed(blob, offsets, lengths)


@dataclass(frozen=True, slots=True)
class _Containers:
    """Every container of every bitmap, in order."""

    first: Ints  # key index of its first row
    card: Ints
    key: Ints
    size: Ints
    is_run: Mask
    n_runs: Ints
    run_first: Ints  # key index of the first row of every run
    owner: Ints  # its bitmap
    place: Ints  # its offset in the body of its bitmap
    # and of every bitmap:
    opening: Ints  # its first container
    value: Ints
    n: Ints  # its number of containers
    has_runs: Mask
    pad: Ints  # so that containers lie at even addresses
    head: Ints
    body: Ints


def _containers(keys: Words) -> _Containers:
    n = len(keys)
    group = keys >> np.uint64(16)
    new = starts(group)
    first = np.flatnonzero(new)
    card = np.diff(first, append=n)
    value = (keys[first] >> np.uint64(32)).astype(np.int64)
    np.logical_or(new[1:], keys[1:] - keys[:-1] != np.uint64(1), out=new[1:])
    run_first = np.flatnonzero(new)
    n_runs = np.diff(np.searchsorted(run_first, first), append=len(run_first))
    plain = np.where(card > ARRAY_MAX, BITS_SIZE, 2 * card)
    is_run = 2 + 4 * n_runs < plain
    size = np.where(is_run, 2 + 4 * n_runs, plain)
    opens = starts(value)
    opening = np.flatnonzero(opens)
    count = np.diff(opening, append=len(first))
    has_runs = np.logical_or.reduceat(is_run, opening)
    flags = (count + 7) // 8 + np.where(count >= 4, 4 * count, 0)
    head = np.where(has_runs, 4 + 4 * count + flags, 8 + 8 * count)
    ends = np.concatenate(([0], np.cumsum(size)))
    owner = np.cumsum(opens) - 1
    return _Containers(
        first=first,
        card=card,
        key=(group[first] & np.uint64(0xFFFF)).astype(np.int64),
        size=size,
        is_run=is_run,
        n_runs=n_runs,
        run_first=run_first,
        owner=owner,
        place=ends[:-1] - ends[opening][owner],
        opening=opening,
        value=value[opening],
        n=count,
        has_runs=has_runs,
        pad=head & 1,
        head=head,
        body=ends[opening + count] - ends[opening],
    )


def _put(blob: Bits, at: Ints, numbers: Ints, width: int) -> None:
    for i in range(width):
        blob[at + i] = (numbers >> (8 * i)) & 0xFF


def _write_headers(blob: Bits, c: _Containers, start: Ints, payload: Ints) -> None:
    plain = ~c.has_runs
    _put(blob, start[plain], np.full(int(plain.sum()), NO_RUNS), 4)
    _put(blob, start[plain] + 4, c.n[plain], 4)
    mixed = np.flatnonzero(c.has_runs)
    _put(blob, start[mixed], RUNS | ((c.n[mixed] - 1) << 16), 4)
    within = np.arange(len(c.first)) - c.opening[c.owner]
    run, at = within[c.is_run], start[c.owner[c.is_run]] + 4
    np.bitwise_or.at(blob, at + (run >> 3), (1 << (run & 7)).astype(np.uint8))
    count = c.n[c.owner]
    described = np.where(c.has_runs[c.owner], 4 + (count + 7) // 8, 8)
    described += start[c.owner]
    _put(blob, described + 4 * within, c.key, 2)
    _put(blob, described + 4 * within + 2, c.card - 1, 2)
    # Bitmaps of few containers, one of which is a run, carry no offsets.
    located = np.flatnonzero(~c.has_runs[c.owner] | (count >= 4))
    at = described + 4 * count + 4 * within
    _put(blob, at[located], (payload - start[c.owner])[located], 4)


def _write_containers(blob: Bits, c: _Containers, keys: Words, payload: Ints) -> None:
    shorts = blob[: len(blob) & ~1].view("<u2")
    low = keys.astype(np.uint16)
    is_array = ~c.is_run & (c.card <= ARRAY_MAX)
    shift = np.repeat(payload // 2 - c.first, c.card)
    target = shift + np.arange(len(keys))
    chosen = np.repeat(is_array, c.card)
    shorts[target[chosen]] = low[chosen]
    for i in np.flatnonzero(~c.is_run & ~is_array).tolist():
        mask = np.zeros(1 << 16, np.bool_)
        mask[low[c.first[i] : c.first[i] + c.card[i]]] = True
        bits = np.packbits(mask, bitorder="little")
        blob[payload[i] : payload[i] + BITS_SIZE] = bits
    runs = np.flatnonzero(c.is_run)
    if not runs.size:
        return
    shorts[payload[runs] // 2] = c.n_runs[runs]
    container = np.repeat(np.arange(len(c.first)), c.n_runs)
    length = np.diff(c.run_first, append=len(keys))
    in_run = np.flatnonzero(c.is_run[container])
    before = np.cumsum(c.n_runs) - c.n_runs
    at = (
        payload[container] // 2
        + 1
        + 2 * (np.arange(len(container)) - before[container])
    )
    shorts[at[in_run]] = low[c.run_first[in_run]]
    shorts[at[in_run] + 1] = (length[in_run] - 1).astype(np.uint16)
