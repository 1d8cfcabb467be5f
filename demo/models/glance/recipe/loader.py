"""Batches of pictures with questions, drawn by other processes ahead of time.

The questions of a batch share what precedes the picture, so the decoder reads that and the picture once for each picture
and goes on from there with each question. Some rows have a second picture.
"""
import random
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch.multiprocessing import get_context

from canvas import Ask
from clicks import call, click_tool
from facts import fact
from generate import SYSTEMS
from lesson import lesson
from places import Sight
from prints import page
from sight_tokens import encode, split, widen
from tools import everyday
from values import Draw

# Questions for each picture, and the part of the rows that have a second question behind the first.
QUESTIONS, FOLLOWED = 6, 0.25
# The part of the pictures with a row that goes on with another picture, and that with a question about something else.
ANOTHER, ELSEWHERE = 0.3, 0.15
# Rows of like length run together; these are the shares of the rows in such groups, the shortest first.
GROUPS = (0.6, 0.3, 0.1)


@dataclass
class Rows:
    """Questions and answers as ids [rows, length], the mask of what is learnt, the picture of each row, and the number of
    its second picture or -1. `source` has the number of each row before the rows were sorted.
    """
    ids: torch.Tensor
    learn: torch.Tensor
    owner: torch.Tensor
    second: torch.Tensor
    source: torch.Tensor


@dataclass
class Batch:
    """`pixels` is uint8 [pictures, tile, tile, 3], `extents` [pictures, 2] has the shares of the tile's width and height that
    each picture takes, `labels` bool [pictures, cells, cells, labels], `letters`
    int16 [pictures, high, wide] as a lesson has them, `prefix` the shared ids."""
    pixels: torch.Tensor
    extents: torch.Tensor
    labels: torch.Tensor
    letters: torch.Tensor
    prefix: torch.Tensor | None
    groups: list[Rows]


def moved(part, device):
    """Returns a batch or rows on a device."""
    to = lambda value: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else [moved(each, device) for each in value] if isinstance(value, list) else value
    return replace(part, **{field.name: to(getattr(part, field.name)) for field in fields(part)})


def context(d: Draw) -> tuple[list, dict | None, list]:
    """Returns what precedes the picture in a batch, and in some batches the tool `click` and all tools."""
    before = [{'role': 'system', 'content': d.one(SYSTEMS)}] if d.chance(0.25) else []
    if d.chance(0.2):
        question, answer = fact(d)
        before += [{'role': 'user', 'content': question}, {'role': 'assistant', 'content': answer}]
    if not d.chance(0.25):
        return before, None, []
    tools = [tool := click_tool(d)] + [everyday(d).schema(d) for _ in range(d.one([0, 0, 0, 1, 2]))]
    return before, tool, d.rng.sample(tools, len(tools))


def answered(ask, tool, picture: bool) -> list:
    answer = call(tool, ask.click) if ask.click else {'role': 'assistant', 'content': ask.answer}
    return [{'role': 'user', 'content': ask.question, 'picture': picture}, answer]


def chosen(d: Draw, asks, tool) -> list:
    """Returns lists of one or two questions. Clicks are asked only with a tool, and then most often."""
    asks = [ask for ask in asks if tool or not ask.click]
    weights = [d.rng.random() * (4 if ask.click else 1) for ask in asks]
    order = [ask for _, ask in sorted(zip(weights, asks), key=lambda each: -each[0])][:QUESTIONS]
    if d.chance(ELSEWHERE):
        order.append(Ask('elsewhere', *fact(d)))
    return [[ask, d.one(asks)] if len(asks) > 1 and d.chance(FOLLOWED) else [ask] for ask in order]


def batch(number: int, size: int, sight: Sight) -> Batch:
    """Returns the batch of a number."""
    lessons = [lesson(f'glance-{number}-{at}', sight) for at in range(size)]
    d = Draw(random.Random(f'asked-{number}'))
    before, tool, tools = context(d)
    return assemble(lessons, sight, before, tool, tools, lambda asks: chosen(d, asks, tool), lambda: d.rng.randrange(size) if d.chance(ANOTHER) else -1)


def pages(number: int, size: int, sight: Sight) -> Batch:
    """Returns a batch without questions. Three quarters of it are pages full of text."""
    return Batch(*stacked([lesson(f'page-{number}-{at}', sight, kind=page if at % 4 else None) for at in range(size)]), None, [])


def stacked(lessons) -> list:
    return [torch.from_numpy(np.stack([getattr(each, name) for each in lessons])) for name in ('pixels', 'extent', 'labels', 'letters')]


def assemble(lessons, sight: Sight, before: list, tool: dict | None, tools: list, turns_of, another=lambda: -1) -> Batch:
    """Returns a batch of all lists of questions that `turns_of` makes of a picture's.

    `another` returns the number of a picture that one more row goes on with, or -1.
    """
    rows = []
    for owner, each in enumerate(lessons):
        made = [(turns, -1) for turns in turns_of(each.asks)]
        if (second := another()) >= 0:
            made.append(([made[0][0][0], turns_of(lessons[second].asks)[0][0]], second))
        for turns, second in made:
            said = [message for at, ask in enumerate(turns) for message in answered(ask, tool, at == 0 or second >= 0)]
            ids, learn = encode(before + said, tools or None)
            prefix, start = split(ids, sight.rows)
            rows.append((owner, *widen(ids[start:], learn[start:], sight.rows), second))
    return Batch(*stacked(lessons), torch.tensor(prefix), grouped(rows))


def grouped(rows) -> list[Rows]:
    order, out = sorted(range(len(rows)), key=lambda at: len(rows[at][1])), []
    for part in np.split(np.array(order), np.rint(np.cumsum(GROUPS[:-1]) * len(order)).astype(int)):
        if not len(part):
            continue
        length = max(len(rows[at][1]) for at in part)
        ids, learn = np.zeros((len(part), length), np.int64), np.zeros((len(part), length), bool)
        for row, at in enumerate(part):
            n = len(rows[at][1])
            ids[row, :n], learn[row, :n] = rows[at][1], rows[at][2]
        out.append(Rows(*map(torch.from_numpy, (ids, learn, np.array([rows[at][0] for at in part]), np.array([rows[at][3] for at in part]), part))))
    return out


def fill(queue, make, first: int, step: int, options):
    # A picture is small work; threads of one process would wait for each other.
    torch.set_num_threads(1)
    number = first
    while True:
        queue.put((number, make(number, *options)))
        number += step


class Ahead:
    """Iterable of (number, `make(number, *options)`) from `first` on, which other processes make ahead of time.

    What is made first comes first, so the order differs between runs.
    """

    def __init__(self, make, first: int, workers: int, *options):
        spawn = get_context('spawn')
        self.queue = spawn.Queue(2 * workers)
        self.workers = [spawn.Process(target=fill, args=(self.queue, make, first + at, workers, options), daemon=True) for at in range(workers)]
        for worker in self.workers:
            worker.start()

    def __iter__(self):
        while True:
            yield self.queue.get()

    def close(self):
        for worker in self.workers:
            worker.terminate()
