"""Batches of pictures with questions, drawn by other processes ahead of time.

The questions of a batch share their system message, so the decoder reads it and the picture once for each picture and
goes on from there with each question.
"""
import random
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from clicks import call, click_tool
from generate import SYSTEMS
from lesson import lesson
from places import Sight
from sight_tokens import encode, split
from values import Draw

# Questions for each picture, and the part of the rows that have a second question behind the first.
QUESTIONS, FOLLOWED = 6, 0.25
# Rows of like length run together; this is the number of such groups.
GROUPS = 5


@dataclass
class Rows:
    """Questions and answers as ids [rows, length], the mask of what is learnt, and the picture of each row.

    `source` has the number of each row before the rows were sorted.
    """
    ids: np.ndarray
    learn: np.ndarray
    owner: np.ndarray
    source: np.ndarray


@dataclass
class Batch:
    pixels: np.ndarray
    labels: np.ndarray
    prefix: np.ndarray | None
    groups: list[Rows]


def context(d: Draw) -> tuple[list, dict | None]:
    """Returns the system message of a batch, if it has one, and the tool `click` in a quarter of the batches."""
    return [{'role': 'system', 'content': d.one(SYSTEMS)}] if d.chance(0.25) else [], click_tool(d) if d.chance(0.25) else None


def answered(ask, tool) -> list:
    answer = call(tool, ask.click) if ask.click else {'role': 'assistant', 'content': ask.answer}
    return [{'role': 'user', 'content': ask.question}, answer]


def chosen(d: Draw, asks, tool) -> list:
    """Returns lists of one or two questions. Clicks are asked only with a tool, and then most often."""
    asks = [ask for ask in asks if tool or not ask.click]
    weights = [d.rng.random() * (4 if ask.click else 1) for ask in asks]
    order = [ask for _, ask in sorted(zip(weights, asks), key=lambda each: -each[0])][:QUESTIONS]
    return [[ask, d.one(asks)] if len(asks) > 1 and d.chance(FOLLOWED) else [ask] for ask in order]


def batch(number: int, size: int, sight: Sight, asked=True) -> Batch:
    """Returns the batch of a number; without `asked` it has only pictures and labels."""
    lessons = [lesson(f'glance-{number}-{at}', sight) for at in range(size)]
    if not asked:
        return Batch(*stacked(lessons), None, [])
    d = Draw(random.Random(f'asked-{number}'))
    before, tool = context(d)
    return assemble(lessons, sight, before, tool, lambda asks: chosen(d, asks, tool))


def stacked(lessons) -> tuple:
    return np.stack([each.pixels for each in lessons]), np.stack([each.labels for each in lessons])


def assemble(lessons, sight: Sight, before: list, tool: dict | None, turns_of) -> Batch:
    """Returns a batch of all lists of questions that `turns_of` makes of a picture's."""
    rows = []
    for owner, each in enumerate(lessons):
        for turns in turns_of(each.asks):
            ids, learn = encode(before + [message for ask in turns for message in answered(ask, tool)], [tool] if tool else None)
            prefix, start = split(ids, sight.rows)
            rows.append((owner, ids[start:], learn[start:]))
    return Batch(*stacked(lessons), np.array(prefix), grouped(rows))


def grouped(rows) -> list[Rows]:
    order, out = sorted(range(len(rows)), key=lambda at: len(rows[at][1])), []
    for part in np.array_split(order, GROUPS):
        length = max(len(rows[at][1]) for at in part)
        ids, learn = np.zeros((len(part), length), np.int64), np.zeros((len(part), length), bool)
        for row, at in enumerate(part):
            n = len(rows[at][1])
            ids[row, :n], learn[row, :n] = rows[at][1], rows[at][2]
        out.append(Rows(ids, learn, np.array([rows[at][0] for at in part]), part))
    return out


def fill(queue, make, first: int, step: int, options):
    number = first
    while True:
        queue.put((number, make(number, *options)))
        number += step


class Ahead:
    """Iterable of (number, `make(number, *options)`) from `first` on, which other processes make ahead of time."""

    def __init__(self, make, first: int, workers: int, *options):
        spawn = get_context('spawn')
        self.queues = [spawn.Queue(6) for _ in range(workers)]
        self.workers = [spawn.Process(target=fill, args=(queue, make, first + at, workers, options), daemon=True) for at, queue in enumerate(self.queues)]
        for worker in self.workers:
            worker.start()

    def __iter__(self):
        while True:
            for queue in self.queues:
                yield queue.get()

    def close(self):
        for worker in self.workers:
            worker.terminate()
