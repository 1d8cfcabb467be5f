"""Score a checkpoint, rounded as it ships, on wordings, sums and names it has not been trained on. Greedy decoding."""
import argparse
import random
from collections import Counter, defaultdict
from pathlib import Path

import torch

import export
import generate
import memory
import sums
import topics
import unknown
from model import as_shipped
from noise import finish, vary
from settings import WORK_DIR
from template import render
from tokenizer import Tokenizer

TOPIC = {t.name: t for t in generate.TOPICS}
FREE = Path(__file__).with_name('text') / 'free.list'


@torch.no_grad()
def answers(model, tokenizer, chats, limit=80):
    """The greedy answer to each chat; prompts of one length run as one batch."""
    end = tokenizer.id['<|im_end|>']
    prompts = [tokenizer.encode(render(c, add_generation_prompt=True)) for c in chats]
    groups, out = defaultdict(list), [None] * len(chats)
    for i, p in enumerate(prompts):
        groups[len(p)].append(i)
    for rows in groups.values():
        ids = torch.tensor([prompts[i] for i in rows])
        said, past = [], None
        for _ in range(limit):
            hidden, past = model.hidden(ids, past)
            ids = model.logits(hidden[:, -1:]).argmax(-1)
            said.append(ids)
            if all((torch.cat(said, 1) == end).any(1)):
                break
        for i, row in zip(rows, torch.cat(said, 1).tolist()):
            out[i] = tokenizer.decode(row[:row.index(end)] if end in row else row)
    return out


def user(text):
    return [{'role': 'user', 'content': text}]


def total(op, a, b):
    value = f'= {sums.result(op, a, b)}'
    return lambda said: said.rstrip('.').endswith(value) or value + ',' in said


def wanted(text):
    """A check from the right side of free.list: topics, unknown, or a text to contain."""
    names = text.split(', ')
    if names == ['unknown']:
        return lambda said: unknown.FACT in said
    if all(n in TOPIC for n in names):
        return lambda said: any(TOPIC[n].right(said) for n in names)
    return lambda said: text in said


def cases():
    """(group, chat, check) for everything that is scored."""
    rng = random.Random('evaluation')
    for t in generate.TOPICS:
        for text in t.held_out:
            yield 'topics, held-out wordings', user(text[:1].upper() + text[1:] + '?'), t.right
            yield 'topics, held-out wordings with noise', user(vary(rng, text)), t.right
        yield 'topics, trained wordings', user(topics.expand(rng, rng.choice(t.wordings))), t.right
    for a in range(21):
        for b in range(21):
            for op in '+-':
                text = finish(rng, sums.question(rng, op, a, b), True)
                yield 'sums, 0 to 20' if op == '+' or a >= b else 'sums, 0 to 20 below zero', user(text), total(op, a, b)
    beyond = [(op, a, b) for op in '+-' for a in range(100) for b in range(100) if sums.held_out(op, a, b)]
    for op, a, b in rng.sample(beyond, 600):
        kind = 'addition' if op == '+' else 'subtraction' if a >= b else 'subtraction below zero'
        yield f'sums, two digits, held-out, {kind}', user(f'What is {a} {op} {b}?'), total(op, a, b)
    for i in range(120):
        name, between = memory.coined(rng) if i % 2 else rng.choice(memory.NAMES), i % 4
        chat = user(rng.choice(memory.KINDS['name'][1]).format(name))
        chat.append({'role': 'assistant', 'content': f'Nice to meet you, {name}!'})
        for _ in range(between):
            topic = rng.choice(generate.TOPICS)
            chat += user(topics.ask(rng, topic) + '?') + [{'role': 'assistant', 'content': topic.answers[0]}]
        chat += user(memory.first_upper(rng.choice(memory.KINDS['name'][3])) + '?')
        yield 'names told earlier', chat, lambda said, name=name: name in said
    for _ in range(120):
        yield 'unknown, held-out', user(vary(rng, unknown.held_out(rng), 0.5)), lambda said: unknown.FACT in said
    for line in FREE.read_text().splitlines():
        text, right = line.split(' => ')
        yield 'free prompts by hand', user(text), wanted(right)


def evaluate(checkpoint, show=0, sample=0, log=print):
    model, tokenizer = as_shipped(export.load(checkpoint)), Tokenizer.load()
    everything, taken = list(cases()), Counter()
    if sample:
        random.Random(0).shuffle(everything)
        everything = [c for c in everything if taken.update([c[0]]) or taken[c[0]] <= sample]
    said = answers(model, tokenizer, [chat for _, chat, _ in everything])
    scores, wrong = defaultdict(list), defaultdict(list)
    for (group, chat, check), text in zip(everything, said):
        scores[group].append(check(text))
        if not scores[group][-1]:
            wrong[group].append(f'{chat[-1]["content"]!r} -> {text!r}')
    for group, marks in scores.items():
        log(f'{group}: {sum(marks)} of {len(marks)} ({100 * sum(marks) / len(marks):.1f} %)')
        for line in wrong[group][:show if 'free' not in group else 99 if show else 0]:
            log('   ' + line)
    return {g: sum(m) / len(m) for g, m in scores.items()}


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', default=str(WORK_DIR / 'checkpoint.pt'))
    args.add_argument('--show', type=int, default=0, help='wrong answers to print for each group')
    args.add_argument('--sample', type=int, default=0, help='score only so many prompts of each group')
    args.add_argument('--ask', help='only answer this')
    args = args.parse_args()
    if args.ask:
        print(answers(as_shipped(export.load(args.checkpoint)), Tokenizer.load(), [user(args.ask)])[0])
    else:
        evaluate(args.checkpoint, args.show, args.sample)
