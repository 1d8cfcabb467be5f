"""Trains the model on pictures with questions and on chats without pictures, resumable at any time.

The rate is constant for the first part of the run and then falls to zero. The run ends after `--steps` or `--minutes`,
whichever is first. `--from` begins with the weights of another run. On a CPU, two processes of one thread took 1.9 times
the pictures of one with two threads: `torchrun --nproc-per-node 2 learn.py --threads 1` averages their gradients.
"""
import argparse
import json
import os
import threading
import time
from collections import defaultdict, deque
from dataclasses import asdict
from pathlib import Path
from queue import Empty, Queue

# Threads that wait must not spin on a shared machine.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F

# The places of the guide's modules come first.
from places import KEPT_DIR, Sight
import shards
from loader import Ahead, batch as picture_batch, moved, pages
from guide_weights import guide
from muon import Muon, has_bfloat16
from score import load
from settings import Shape
from sight import Glance, to_input
from train import batches, logger, loss_of, mean, optimizers

# Processes that draw pictures for each one that draws pages. On a core, a page took 23 ms and a drawn scene 9 ms, and a step
# had a fifth as many pages as pictures.
PAGE_SHARE = 3
# Chats of a shard.
TEXT_CHATS = 3000
# Weights of the auxiliary losses beside that of the answers.
AUXILIARY = {'letters': 1, 'cells': 0.3}
# Weight of a cell beside that of a letter.
BESIDE = 0.3
# Parts of the model.
PARTS = ['letters', 'reader', 'encoder', 'decoder']
# RANK is the number of this process among PROCESSES. Each draws batches with numbers of its own, which begin BATCHES_APART from each other.
RANK, PROCESSES, BATCHES_APART = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1)), 10_000_000
# Steps until the full rate, and seconds between two checkpoints.
WARM, SAVE_SECONDS = 100, 60


class Feed:
    """Batches on the device. A batch comes once more while the next one is being made, so that the device never waits."""

    def __init__(self, source, device):
        self.ready, self.used = Queue(3), deque(maxlen=50)
        self.fresh = self.again = 0
        threading.Thread(target=self.fill, args=(source, device), daemon=True).start()

    def fill(self, source, device):
        for number, batch in source:
            self.ready.put((number, moved(batch, device)))

    def take(self):
        try:
            number, batch = self.ready.get(block=not self.used)
        except Empty:
            self.again += 1
            return self.used.popleft()
        self.fresh += 1
        self.used.append((number, batch))
        return number, batch


def texts(ahead: Ahead, tokens: int):
    """Yields (number of the shard, batch) of chats without pictures."""
    for number, data in ahead:
        for x, learn in batches(*data, np.random.default_rng(number), tokens):
            yield number, x, learn


def create(start: Path | None) -> Glance:
    """Returns the model of a checkpoint's folder, or a new one with the guide's weights in the decoder."""
    if start:
        model = load(start)[0].train()
    else:
        model = Glance(Sight(), Shape())
        model.guide.load_state_dict(guide().state_dict())
    return model.to(memory_format=torch.channels_last)


def all_optimizers(model: Glance, rate: float, share: float) -> list:
    """Returns those of the encoder and the reader, and those of the decoder with a share of the rate."""
    matrices = [p for block in model.encoder.blocks for p in block.parameters() if p.ndim == 2] + [model.encoder.connect.weight]
    taken = {id(p) for p in matrices}
    rest = [p for part in (model.encoder, model.reader, model.head) for p in part.parameters() if id(p) not in taken]
    muon = Muon(matrices, rate)
    adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.01)
    seeing, saying = [muon, adam], optimizers(model.guide, rate)
    for opts, part in ((seeing, 1), (saying, share)):
        for opt in opts:
            for group in opt.param_groups:
                group['share'] = part
    return seeing + saying


def freeze(model: Glance, parts: list):
    """Leaves all as it is but the parts of these names."""
    reader = model.reader
    modules = {'letters': [reader.stem, reader.large, reader.back, reader.end, reader.head], 'reader': [reader.more], 'encoder': [model.encoder, model.head], 'decoder': [model.guide]}
    for name in set(PARTS) - set(parts):
        for module in modules[name]:
            module.eval().requires_grad_(False)
    if 'reader' not in parts:
        for vector in (reader.begins, reader.across, reader.down):
            vector.requires_grad_(False)


def found_loss(scores, truth):
    """Returns cross entropy of what is there and what is not. Sums over names, so that rare ones count."""
    return F.binary_cross_entropy_with_logits(scores.float(), truth.float()) * truth.shape[-1]


def letters_loss(letters, here, begins, truth):
    """Returns the loss of where letters are, which ones, and which begin a word. `truth` is as a lesson's `letters`."""
    there = truth >= 0
    count = there.sum().clamp(min=1)
    # A cell beside a letter's may be chosen in its place, so it knows the letter, too.
    near = truth
    for beside in (F.pad(truth[:, :, :-1], (1, 0), value=-1), F.pad(truth[:, :, 1:], (0, 1), value=-1), F.pad(truth[:, :-1], (0, 0, 1, 0), value=-1), F.pad(truth[:, 1:], (0, 0, 0, 1), value=-1)):
        near = torch.where(near < 0, beside, near)
    known = near >= 0
    weight = torch.where(there, 1.0, BESIDE)[known]
    which = F.cross_entropy(letters[known].float(), near[known] // 2, reduction='none', label_smoothing=0.02)
    first = F.binary_cross_entropy_with_logits(begins[known].float(), (near[known] % 2).float(), reduction='none')
    return F.binary_cross_entropy_with_logits(here.float(), there.float(), reduction='sum') / count + ((which + first) * weight).sum() / weight.sum().clamp(min=1)


def picture_loss(model: Glance, batch, parts: list):
    """Returns (losses of what is in the cells and rows by name, mean loss of the answers' tokens or `None`)"""
    device = batch.pixels.device.type
    with torch.autocast(device, torch.bfloat16, enabled=has_bfloat16(device)):
        pixels = to_input(batch.pixels).contiguous(memory_format=torch.channels_last)
        small = model.reader.cells(pixels)
        seen = {'letters': letters_loss(*model.reader.scores(small), batch.letters.long())}
        if parts == ['letters']:
            return seen, None
        rows = torch.cat([model.encoder(pixels, batch.extents), model.reader(small, model.letter_embeddings(), batch.extents)], 1)
        if 'encoder' in parts:
            seen['cells'] = found_loss(model.labels(rows), batch.labels)
        if not batch.groups:
            return seen, None
        past = model.read(rows, batch.prefix)
        said = [model.answer(past, group, rows) for group in batch.groups]
    scores, targets = (torch.cat(each) for each in zip(*said))
    return seen, F.cross_entropy(scores.float(), targets)


class Run:
    """A training with its state: what is saved and restored."""

    def __init__(self, args, log):
        self.args, self.log = args, log
        torch.manual_seed(1)
        self.model = create(args.start).to(args.device)
        freeze(self.model, args.parts)
        if args.steady:
            for module in self.model.modules():
                if isinstance(module, torch.nn.BatchNorm2d):
                    module.eval()
        self.opts = all_optimizers(self.model, args.rate, args.decoder)
        self.at = {'step': 0, 'batch': 0, 'shard': 0, 'spent': 0.0, 'pictures': 0, 'tokens': 0}
        if (KEPT_DIR / 'glance.json').exists() and not args.fresh:
            self.restore()

    def restore(self):
        read = lambda name: torch.load(KEPT_DIR / f'{name}.pt', weights_only=True, map_location=self.args.device)
        self.model.load_state_dict({**read('encoder'), **read('decoder')})
        for opt, saved in zip(self.opts, read('optimizers')):
            opt.load_state_dict(saved)
        self.at = json.loads((KEPT_DIR / 'glance.json').read_text())['at']

    def save(self):
        """Writes the encoder, the decoder and the optimizers, and last the file that says that they are whole."""
        if RANK:
            return
        state = self.model.state_dict()
        decoder = {name: value for name, value in state.items() if name.startswith('guide.')}
        parts = {'encoder': {name: value for name, value in state.items() if name not in decoder}, 'decoder': decoder, 'optimizers': [opt.state_dict() for opt in self.opts]}
        for name, part in parts.items():
            torch.save(part, KEPT_DIR / f'{name}.part')
        for name in parts:
            (KEPT_DIR / f'{name}.part').rename(KEPT_DIR / f'{name}.pt')
        (KEPT_DIR / 'glance.json').write_text(json.dumps({'at': self.at, 'sight': asdict(self.model.encoder.s), 'shape': asdict(self.model.guide.s)}))

    def progress(self) -> float:
        return max(self.at['step'] / self.args.steps, self.at['spent'] / (60 * self.args.minutes))

    def update(self):
        if PROCESSES > 1:
            average([p.grad for p in self.model.parameters() if p.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        rate = self.args.rate * min(1, (self.at['step'] + 1) / WARM, (1 - self.progress()) / (1 - self.args.flat))
        for opt in self.opts:
            for group in opt.param_groups:
                group['lr'] = rate * group['share']
            opt.step()
            opt.zero_grad(set_to_none=True)

    def all(self):
        args, at = self.args, self.at
        draw = pages if args.parts == ['letters'] else picture_batch
        first = lambda name: at[name] % BATCHES_APART + RANK * BATCHES_APART
        sources = [Ahead(draw, first('batch'), args.workers, args.pictures, self.model.encoder.s), Ahead(shards.create, first('shard'), args.writers, TEXT_CHATS)]
        pictures, chats = Feed(sources[0], args.device), texts(sources[1], args.tokens)
        if args.pages:
            sources.append(Ahead(pages, first('batch'), max(1, args.workers // PAGE_SHARE), args.pages, self.model.encoder.s))
            full = Feed(sources[-1], args.device)
        losses, saved, begun = defaultdict(list), time.time(), None
        while self.progress() < 1 and at['spent'] < 60 * args.pause:
            number, batch = pictures.take()
            begun = begun or time.time()
            self.look(batch, losses)
            if args.pages:
                self.look(full.take()[1], losses)
            if args.talk and at['step'] % args.talk == 0:
                self.talk(chats, losses)
            self.update()
            at |= {'step': at['step'] + 1, 'batch': max(at['batch'], number + 1), 'pictures': at['pictures'] + PROCESSES * len(batch.pixels), 'spent': at['spent'] + time.time() - begun}
            if PROCESSES > 1:
                # All end at the same step.
                spent = torch.tensor([at['spent']], dtype=torch.float64)
                dist.broadcast(spent, 0)
                at['spent'] = spent.item()
            begun = time.time()
            if at['step'] % args.every == 0:
                self.report(losses, pictures)
                losses.clear()
            if time.time() - saved > SAVE_SECONDS:
                self.save()
                saved = time.time()
        self.save()
        for source in sources:
            source.close()

    def talk(self, chats, losses):
        """Adds the gradient of a batch of chats without pictures."""
        number, x, learn = next(chats)
        # A training that was cut goes on with new chats.
        self.at['shard'] = max(self.at['shard'], number + 1)
        self.at['tokens'] += x.numel()
        _, loss = loss_of(self.model.guide, x.to(self.args.device), learn.to(self.args.device), 0.1)
        loss.backward()
        losses['text'].append(loss.detach())

    def look(self, batch, losses):
        """Adds the gradient of a batch of pictures."""
        seen, said = picture_loss(self.model, batch, self.args.parts)
        total = sum(AUXILIARY[name] * each for name, each in seen.items()) + (0 if said is None else said)
        total.backward()
        for name, value in {**seen, 'answers': said}.items():
            if value is not None:
                losses[name].append(value.detach())

    def report(self, losses, pictures: Feed):
        at = self.at
        parts = ' '.join(f'{name} {mean(values):.4f}' for name, values in losses.items())
        self.log(f'step {at["step"]} {parts} pictures {at["pictures"]:,} ({100 * pictures.again // max(1, pictures.fresh + pictures.again)} % twice) tokens {at["tokens"]:,} {at["spent"] / 60:.2f} min')


def average(gradients: list):
    """Replaces gradients by their means over all processes."""
    flat = torch.cat([each.flatten() for each in gradients])
    dist.all_reduce(flat)
    for each, mean_of_all in zip(gradients, flat.div_(PROCESSES).split([each.numel() for each in gradients])):
        each.copy_(mean_of_all.view_as(each))


def arguments():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--steps', type=int, default=1_000_000)
    args.add_argument('--minutes', type=float, default=1e6)
    args.add_argument('--pause', type=float, default=1e6, help='minutes after which the run stops, to be continued by the same command')
    args.add_argument('--pictures', type=int, default=24, help='pictures of a step')
    args.add_argument('--tokens', type=int, default=3072, help='tokens of chats without pictures in a step')
    args.add_argument('--talk', type=int, default=1, help='one of so many steps has chats without pictures; none has them with 0')
    args.add_argument('--pages', type=int, default=0, help='pages full of text in a step, which the letters and the encoder learn from')
    args.add_argument('--flat', type=float, default=0.5, help='share of the run with the full rate, less than 1')
    args.add_argument('--rate', type=float, default=2e-3)
    args.add_argument('--decoder', type=float, default=0.7, help='share of the rate that the decoder has')
    args.add_argument('--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    args.add_argument('--threads', type=int, default=2)
    args.add_argument('--workers', type=int, default=1, help='processes that draw')
    args.add_argument('--writers', type=int, default=1, help='processes that write chats')
    args.add_argument('--every', type=int, default=50)
    args.add_argument('--from', dest='start', type=Path, help='folder of a checkpoint whose weights the run begins with')
    args.add_argument('--parts', nargs='+', choices=PARTS, default=PARTS, help='parts that learn; the letters alone learn from pages without questions')
    args.add_argument('--steady', action='store_true', help='normalization keeps the statistics it has: for steps of few pictures')
    args.add_argument('--fresh', action='store_true', help='begin anew')
    given = args.parse_args()
    if given.pages and not {'letters', 'encoder'} & set(given.parts):
        args.error('--pages needs letters or encoder among --parts, since nothing else learns from pages')
    return given


if __name__ == '__main__':
    args = arguments()
    torch.set_num_threads(args.threads)
    if PROCESSES > 1:
        dist.init_process_group('gloo')
    log = (lambda line: None) if RANK else logger(KEPT_DIR / 'train.log')
    log(json.dumps(vars(args), default=str))
    Run(args, log).all()
