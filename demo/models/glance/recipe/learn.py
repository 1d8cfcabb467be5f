"""Trains the model in three stages, resumable at any time.

`see` trains the encoder alone, to find the labels of the cells. `all` trains everything on questions, and the decoder on
chats without pictures in every second step, so that they are about a sixth of all tokens. `finish` is `all` with a rate
that falls to zero.
"""
import argparse
import json
import os
import time
from collections import defaultdict
from dataclasses import asdict

# Threads that wait must not spin on a shared machine.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
import numpy as np
import torch
import torch.nn.functional as F

# The places of the guide's modules come first.
from places import KEPT_DIR, Sight
from labels import LABELS
from loader import Ahead, batch as picture_batch
from guide_weights import guide
from muon import Muon, has_bfloat16
from settings import Shape
from sight import Glance, to_input
from talk import shard
from train import batches, logger, loss_of, mean, optimizers

STAGES = ('see', 'all', 'finish')
# Pictures in a step of each stage; the optimizers cost as much as two pictures. One of so many steps has chats, too; their tokens; and the chats of a shard.
PICTURES = {'see': 32, 'all': 24, 'finish': 24}
TEXT_EVERY, TEXT_TOKENS, TEXT_CHATS = 2, 3072, 2000
# Weight of the auxiliary loss beside that of the answers; share of the rate that the decoder has.
AUXILIARY, DECODER_RATE = 0.3, 0.4
WARM, SAVE_SECONDS = 60, 120


def texts(shards: Ahead):
    """Yields (number of the shard, batch) of chats without pictures."""
    for number, data in shards:
        for x, learn in batches(*data, np.random.default_rng(number), TEXT_TOKENS):
            yield number, x, learn


def create() -> Glance:
    model = Glance(Sight(), Shape())
    model.guide.load_state_dict(guide().state_dict())
    return model.to(memory_format=torch.channels_last)


def all_optimizers(model: Glance, rate: float) -> list:
    """Returns those of the encoder, and those of the decoder with a lower rate. Each group keeps its share of the rate."""
    matrices = [p for block in model.encoder.blocks for p in block.parameters() if p.ndim == 2] + [model.encoder.connect.weight]
    taken = {id(p) for p in matrices}
    rest = [p for part in (model.encoder, model.head) for p in part.parameters() if id(p) not in taken]
    muon = Muon(matrices, rate)
    adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    seeing, saying = [muon, adam], optimizers(model.guide, rate)
    for opts, share in ((seeing, 1), (saying, DECODER_RATE)):
        for opt in opts:
            for group in opt.param_groups:
                group['share'] = share
    return seeing + saying


def label_loss(model: Glance, rows, labels):
    """Returns cross entropy of each label in each cell. Sums over labels, so that rare ones count."""
    scores = model.labels(rows).float()
    return F.binary_cross_entropy_with_logits(scores, torch.from_numpy(labels).float()) * len(LABELS)


def picture_loss(model: Glance, batch):
    """Returns (loss of the labels, mean loss of the answers' tokens; 0 without questions)"""
    with torch.autocast('cpu', torch.bfloat16, enabled=has_bfloat16('cpu')):
        rows = model.encoder(to_input(batch.pixels).contiguous(memory_format=torch.channels_last))
        seen = label_loss(model, rows, batch.labels)
        if not batch.groups:
            return seen, torch.zeros(())
        past = model.read(rows, torch.from_numpy(batch.prefix))
        said = [model.answer(past, group) for group in batch.groups]
    scores, targets = (torch.cat(each) for each in zip(*said))
    return seen, F.cross_entropy(scores.float(), targets)


class Run:
    """A training with its state: what is saved and restored."""

    def __init__(self, args, log):
        self.args, self.log, self.path = args, log, KEPT_DIR / 'glance.pt'
        torch.manual_seed(1)
        self.model = create()
        self.opts = all_optimizers(self.model, args.rate)
        self.at = {'stage': 0, 'step': 0, 'batch': 0, 'shard': 0, 'spent': 0.0, 'pictures': 0}
        if self.path.exists() and not args.fresh:
            state = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(state['model'])
            for opt, saved in zip(self.opts, state['optimizers']):
                opt.load_state_dict(saved)
            self.at = state['at']

    def save(self):
        state = {'model': self.model.state_dict(), 'optimizers': [opt.state_dict() for opt in self.opts], 'at': self.at,
                 'sight': asdict(self.model.encoder.s), 'shape': asdict(self.model.guide.s)}
        torch.save(state, self.path.with_suffix('.part'))
        self.path.with_suffix('.part').rename(self.path)

    def rate(self, stage: str, steps: int) -> float:
        step = self.at['step']
        return self.args.rate * (1 - step / steps if stage == 'finish' else min(1, (step + 1) / WARM))

    def update(self, rate: float):
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for opt in self.opts:
            for group in opt.param_groups:
                group['lr'] = rate * group['share']
            opt.step()
            opt.zero_grad(set_to_none=True)

    def stage(self, stage: str, steps: int):
        """Runs the rest of a stage."""
        if self.at['step'] >= steps:
            return
        asked = stage != 'see'
        pictures = Ahead(picture_batch, self.at['batch'], self.args.workers, PICTURES[stage], self.model.encoder.s, asked)
        shards = Ahead(shard, self.at['shard'], 1, TEXT_CHATS) if asked else None
        chats = texts(shards) if shards else None
        losses, begun, saved = defaultdict(list), time.time(), time.time()
        for number, batch in pictures:
            if chats and self.at['step'] % TEXT_EVERY == 0:
                self.talk(chats, losses)
            self.look(batch, losses)
            self.update(self.rate(stage, steps))
            self.count(number, len(batch.pixels), time.time() - begun)
            begun = time.time()
            if self.at['step'] % self.args.every == 0:
                self.report(stage, losses)
                losses.clear()
            done = self.at['step'] >= steps
            if done or time.time() - saved > SAVE_SECONDS:
                self.save()
                saved = time.time()
            if done:
                break
        for source in filter(None, (pictures, shards)):
            source.close()

    def talk(self, chats, losses):
        """Adds the gradient of a batch of chats without pictures."""
        number, x, learn = next(chats)
        # A training that was cut goes on with new chats.
        self.at['shard'] = number + 1
        _, loss = loss_of(self.model.guide, x, learn, 0.1)
        loss.backward()
        losses['text'].append(loss.detach())

    def look(self, batch, losses):
        """Adds the gradient of a batch of pictures."""
        seen, said = picture_loss(self.model, batch)
        (said + AUXILIARY * seen if batch.groups else seen).backward()
        losses['cells'].append(seen.detach())
        losses['answers'].append(said.detach())

    def count(self, number: int, pictures: int, seconds: float):
        at = self.at
        at |= {'step': at['step'] + 1, 'batch': number + 1, 'pictures': at['pictures'] + pictures, 'spent': at['spent'] + seconds}

    def report(self, stage: str, losses):
        at = self.at
        parts = ' '.join(f'{name} {mean(values):.4f}' for name, values in losses.items())
        self.log(f'{stage} step {at["step"]} {parts} pictures {at["pictures"]:,} {at["spent"] / 60:.1f} min, {time.process_time():.0f} s of processor in this run')

    def all(self, steps: list):
        for number, (stage, count) in enumerate(zip(STAGES, steps)):
            if number == self.at['stage']:
                self.stage(stage, count)
                self.at |= {'stage': number + 1, 'step': 0}
                self.save()


def arguments():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--steps', type=int, nargs=3, default=[1800, 2700, 1100], help='steps of each stage')
    args.add_argument('--rate', type=float, default=2e-3)
    args.add_argument('--threads', type=int, default=2)
    args.add_argument('--workers', type=int, default=1, help='processes that draw')
    args.add_argument('--every', type=int, default=50)
    args.add_argument('--fresh', action='store_true', help='begin anew')
    return args.parse_args()


if __name__ == '__main__':
    args = arguments()
    torch.set_num_threads(args.threads)
    log = logger(KEPT_DIR / 'train.log')
    log(json.dumps(vars(args)))
    Run(args, log).all(args.steps)
