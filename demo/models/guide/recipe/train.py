"""Train the decoder on the generated chats: bfloat16 where the device computes it, batches of chats of like length, resumable at any time.

Matrices learn with Muon, embeddings and norms with AdamW. The trunk of the training keeps one learning rate, so that it
can be cut or prolonged anywhere; its state is trunk.pt. `--finish N` branches off: from the trunk's weights the rate
falls to nothing over N steps, and checkpoint.pt is what is exported. The trunk can go on after that; `--finish N --again`
goes on from checkpoint.pt instead, best at a lower `--rate`.
"""
import argparse
import json
import os
import time
from dataclasses import asdict
from multiprocessing import get_context

import numpy as np

# Threads that wait must not spin: on a shared machine that costs more than half the speed.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
import torch
import torch.nn.functional as F

import shards
from model import Guide, count
from muon import Muon, has_bfloat16
from settings import ADDED, VOCAB, WORK_DIR, Shape

PAD = 0
# Many of the first steps are drills, a few of the later ones.
DRILLS = (1500, 0.4, 0.02)


def batches(ids, learn, ends, rng, tokens):
    """Batches of about so many tokens: chats sorted by length within a window, in random order."""
    starts = np.concatenate([[0], ends[:-1]])
    order = rng.permutation(len(ends))
    groups = []
    for window in np.array_split(order, max(1, len(order) // 4000)):
        window, group, longest = sorted(window, key=lambda i: ends[i] - starts[i]), [], 0
        for i in window:
            longest = max(longest, ends[i] - starts[i])
            if longest * (len(group) + 1) > tokens and group:
                groups.append(group)
                group, longest = [], ends[i] - starts[i]
            group.append(i)
        groups.append(group)
    for g in rng.permutation(len(groups)):
        group = groups[g]
        length = max(ends[i] - starts[i] for i in group)
        x, m = np.zeros((len(group), length), np.int64), np.zeros((len(group), length), bool)
        for row, i in enumerate(group):
            n = ends[i] - starts[i]
            x[row, :n], m[row, :n] = ids[starts[i]:ends[i]], learn[starts[i]:ends[i]]
        yield torch.from_numpy(x), torch.from_numpy(m)


def drill(rng, tokens):
    """A batch of copying, from which a model learns soonest to look back: tokens in random order that come again, or pairs
    of which the first asks for the second."""
    length = int(rng.choice([24, 32, 48, 96]))
    rows = max(1, tokens // length)
    x = rng.integers(0, VOCAB - len(ADDED), (rows, length))
    learn = np.zeros((rows, length), bool)
    for row in range(rows):
        if rng.random() < 0.5:
            size = int(rng.integers(4, length // 2 - 2))
            first, again = int(rng.integers(0, length // 2 - size + 1)), int(rng.integers(length // 2, length - size + 1))
            x[row, again:again + size] = x[row, first:first + size]
            learn[row, again + 1:again + size] = True
        else:
            size = int(rng.integers(2, 5))
            pairs = length // 2 // size
            shown = x[row, :pairs * size].reshape(pairs, size)
            x[row, pairs * size:2 * pairs * size] = shown[rng.permutation(pairs)].reshape(-1)
            learn[row, pairs * size:2 * pairs * size] = np.tile(np.arange(size) > 0, pairs)
    return torch.from_numpy(x), torch.from_numpy(learn)


def make(number, chats):
    shards.load(number, chats)


class Shards:
    """Shard after shard, the next ones made by other processes meanwhile."""

    def __init__(self, chats, first=0, workers=1):
        self.chats, self.number, self.workers, self.ahead = chats, first, workers, {}

    def __iter__(self):
        while True:
            for number in range(self.number if self.workers > 1 else self.number + 1, self.number + self.workers + 1):
                if number not in self.ahead:
                    self.ahead[number] = get_context('spawn').Process(target=make, args=(number, self.chats), daemon=True)
                    self.ahead[number].start()
            if self.number in self.ahead:
                self.ahead[self.number].join()
            yield shards.load(self.number, self.chats)
            self.number += 1


def optimizers(model, rate):
    matrices = [p for layer in model.layers for p in layer.parameters() if p.ndim == 2]
    rest = [p for n, p in model.named_parameters() if p.ndim < 2 or n == 'embed_tokens.weight']
    muon = Muon(matrices, rate)
    adam = torch.optim.AdamW(rest, lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    return [muon, adam]


def loss_of(model, x, learn, prompt):
    """(cross entropy of what the assistant says, the same plus `prompt` times that of all the rest)"""
    target = x[:, 1:]
    said = learn[:, 1:]
    rest = (target != PAD) & ~said
    with torch.autocast(x.device.type, torch.bfloat16, enabled=has_bfloat16(x.device.type)):
        hidden, _ = model.hidden(x[:, :-1])
        logits = model.logits(hidden[said])
        others = model.logits(hidden[rest]) if prompt else None
    loss = F.cross_entropy(logits.float(), target[said])
    return loss, loss + prompt * F.cross_entropy(others.float(), target[rest]) if prompt else loss


def mean(losses):
    return torch.stack(losses).mean().item() if losses else float('nan')


def restore(model, opts, path):
    state = torch.load(path, weights_only=True, map_location=model.cos.device)
    model.load_state_dict(state['model'])
    for opt, saved in zip(opts, state['optimizers']):
        opt.load_state_dict(saved)
    return state


def train(args, log):
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    device = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    model = Guide(Shape()).to(device)
    opts = optimizers(model, args.rate)
    trunk, branch, out = WORK_DIR / 'trunk.pt', WORK_DIR / 'branch.pt', WORK_DIR / 'checkpoint.pt'
    path = branch if args.finish else trunk
    at = {'step': 0, 'spent': 0.0, 'seen': 0, 'shard': -1, 'from': 0}
    if args.finish and not path.exists():
        at |= restore(model, opts, trunk)
        if args.again:
            finished = torch.load(out, weights_only=True, map_location=device)
            model.load_state_dict(finished['model'])
            at |= {name: finished[name] for name in ('step', 'seen', 'spent', 'shard')}
        at['from'] = at['step']
    elif path.exists() and not args.fresh:
        at |= restore(model, opts, path)
    step, spent, seen, shard = at['step'], at['spent'], at['seen'], at['shard'] + 1
    last_step = at['from'] + args.finish if args.finish else args.steps
    log(f'{"branch" if args.finish else "trunk"}: {count(model):,} parameters, {device}, {args.threads} threads, {args.tokens} tokens a step, rate {args.rate}, prompt {args.prompt}, from step {step} to {last_step}, {spent / 60:.1f} min so far')

    def save():
        state = {'shape': asdict(model.s), 'model': model.state_dict(), 'optimizers': [o.state_dict() for o in opts],
                 'step': step, 'spent': spent, 'seen': seen, 'shard': shard, 'from': at['from']}
        torch.save(state, path.with_suffix('.part'))
        path.with_suffix('.part').rename(path)

    dice = np.random.default_rng(at['step'])
    losses, drilled, saved, last = [], [], time.time(), time.time()
    for shard, data in enumerate(Shards(args.chats, shard, args.workers), shard):
        for x, learn in batches(*data, np.random.default_rng(shard), args.tokens):
            if step >= last_step:
                save()
                torch.save({'shape': asdict(model.s), 'model': model.state_dict(), 'step': step, 'seen': seen, 'spent': spent, 'shard': shard}, out)
                path.unlink() if args.finish else None
                log(f'done: step {step}, {seen:,} tokens, {spent / 60:.1f} min, loss {mean(losses[-200:]):.4f}')
                return
            rate = args.rate * (1 - (step - at['from']) / args.finish if args.finish else min(1, (step + 1) / 60))
            drilling = dice.random() < DRILLS[1 if step < DRILLS[0] else 2]
            if drilling:
                x, learn = drill(dice, args.tokens)
            said, loss = loss_of(model, x.to(device), learn.to(device), 0 if drilling else args.prompt)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for opt in opts:
                for group in opt.param_groups:
                    group['lr'] = rate
                opt.step()
                opt.zero_grad(set_to_none=True)
            step, seen = step + 1, seen + x.numel()
            (drilled if drilling else losses).append(said.detach())
            now = time.time()
            spent, last = spent + now - last, now
            if step % args.every == 0:
                log(f'step {step} shard {shard} loss {mean(losses[-args.every:]):.4f} drill {mean(drilled[-args.every:]):.4f} rate {rate:.5f} '
                    f'tokens {seen:,} {seen / spent:,.0f}/s {spent / 60:.1f} min')
            if now - saved > 120:
                save()
                saved, losses, drilled = now, losses[-200:], drilled[-50:]


def arguments(parser=None):
    args = parser or argparse.ArgumentParser(description=__doc__)
    args.add_argument('--steps', type=int, default=14_000, help='the step at which the trunk ends')
    args.add_argument('--finish', type=int, default=0, help='branch off the trunk: so many steps of falling rate')
    args.add_argument('--again', action='store_true', help='branch off what was finished last, not the trunk')
    args.add_argument('--prompt', type=float, default=0.1, help='weight of the loss on what the assistant does not say')
    args.add_argument('--chats', type=int, default=20_000, help='chats in a shard')
    args.add_argument('--rate', type=float, default=2.5e-3)
    args.add_argument('--tokens', type=int, default=4096, help='tokens in a step')
    args.add_argument('--device', help='cpu or cuda; default: cuda where it is')
    args.add_argument('--workers', type=int, default=1, help='processes that make the text ahead of time')
    args.add_argument('--threads', type=int, default=2)
    args.add_argument('--seed', type=int, default=1)
    args.add_argument('--every', type=int, default=100)
    args.add_argument('--fresh', action='store_true', help='begin anew')
    return args


def logger(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    out = path.open('a')

    def log(text):
        print(text, flush=True)
        out.write(text + '\n')
        out.flush()
    return log


if __name__ == '__main__':
    args = arguments().parse_args()
    log = logger(WORK_DIR / 'train.log')
    log(json.dumps(vars(args)))
    train(args, log)
