"""Score a checkpoint, rounded as it ships, on the cases of ../evaluation. Greedy decoding, nothing constrained.

`node ../evaluation/run.mjs` asks the same through the public endpoint.
"""
import argparse
import json
import random
import re
from collections import Counter, defaultdict

import torch

import export
from cases import FOLDER
from model import as_shipped
from settings import WORK_DIR
from template import dump, render
from tokenizer import Tokenizer

CALL = re.compile(r'<tool_call>\n(.*?)\n</tool_call>', re.S)


@torch.no_grad()
def answers(model, tokenizer, prompts, limit=200):
    """The greedy answer to each prompt; those of one length run as one batch."""
    end = tokenizer.id['<|im_end|>']
    prompts = [tokenizer.encode(p) for p in prompts]
    groups, out = defaultdict(list), [None] * len(prompts)
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


def prompt(case, library) -> str:
    """What the endpoint makes of a request with this case."""
    messages, system = [], case.get('system', '')
    if 'schema' in case:
        system += ('\n\n' if system else '') + 'Answer in JSON, by this schema: ' + json.dumps(case['schema'], separators=(',', ':'), ensure_ascii=False)
    elif case.get('json') and 'json' not in str(case['say']).lower():
        system += ('\n\n' if system else '') + 'Answer with a JSON object.'
    if system:
        messages.append({'role': 'system', 'content': system})
    turns = [case['say']] if isinstance(case['say'], str) else case['say']
    messages += [{'role': 'assistant' if i % 2 else 'user', 'content': t} for i, t in enumerate(turns)]
    if called := case.get('called'):
        messages.append({'role': 'assistant', 'content': None, 'tool_calls': [{'function': c} for c in called]})
        messages += [{'role': 'tool', 'content': c['result']} for c in called]
    tools = [{'type': 'function', 'function': library[t] if isinstance(t, str) else t} for t in case.get('tools', [])]
    return render(messages, tools=tools, add_generation_prompt=True, enable_thinking=case.get('think', False))


def read(said: str):
    """(text after the thought, calls or None where one is broken)"""
    text = said.split('</think>', 1)[-1].strip()
    try:
        return CALL.sub('', text).strip(), [json.loads(c) for c in CALL.findall(text)]
    except ValueError:
        return text, None


def marks(want: dict, said: str) -> dict:
    """What is right; run.mjs has the same rules."""
    text, calls = read(said)
    if 'calls' in want:
        names = lambda list: sorted(c.get('name', '') for c in list or [])
        whole = lambda list: sorted(json.dumps(c, sort_keys=True) for c in list or [])
        return {'name': names(calls) == names(want['calls']), 'arguments': whole(calls) == whole(want['calls'])}
    right = True
    if want.get('direct'):
        right &= calls == [] and '<tool_call>' not in said
    if 'any' in want:
        right &= any(x.lower() in text.lower() for x in want['any'])
    if 'all' in want:
        right &= all(x.lower() in text.lower() for x in want['all'])
    if 'number' in want:
        # The last one, so that worked steps do not count.
        right &= re.findall(r'-?\d+', text)[-1:] == [want['number']]
    if 'json' in want:
        try:
            right &= json.loads(text) == want['json']
        except ValueError:
            right = False
    return {'right': right}


def evaluate(model, show=0, sample=0, log=print):
    tokenizer = Tokenizer.load()
    for name in ('templates', 'free'):
        document = json.loads((FOLDER / f'{name}.json').read_text())
        cases, taken = document['cases'], Counter()
        if sample:
            random.Random(0).shuffle(cases)
            cases = [c for c in cases if taken.update([c['group']]) or taken[c['group']] <= sample]
        said = answers(model, tokenizer, [prompt(c, document['tools']) for c in cases])
        scores, wrong = defaultdict(lambda: defaultdict(list)), defaultdict(list)
        for c, text in zip(cases, said):
            result = marks(c['want'], text)
            for what, right in result.items():
                scores[c['group']][what].append(right)
            if not all(result.values()):
                wrong[c['group']].append(f'{c["say"]!r} -> {text!r}; want {dump(c["want"])}')
        for group in sorted(scores):
            for what, right in scores[group].items():
                log(f'{name}: {group}{"" if what == "right" else ", " + what}: {sum(right)} of {len(right)} ({100 * sum(right) / len(right):.1f} %)')
            for line in wrong[group][:show]:
                log('   ' + line)


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', default=str(WORK_DIR / 'checkpoint.pt'))
    args.add_argument('--show', type=int, default=0, help='wrong answers to print for each group')
    args.add_argument('--sample', type=int, default=0, help='score only so many cases of each group')
    args.add_argument('--threads', type=int, default=2)
    args.add_argument('--ask', help='only answer this')
    args = args.parse_args()
    torch.set_num_threads(args.threads)
    model = as_shipped(export.load(args.checkpoint))
    if args.ask:
        print(answers(model, Tokenizer.load(), [prompt({'say': args.ask}, {})])[0])
    else:
        evaluate(model, args.show, args.sample)
