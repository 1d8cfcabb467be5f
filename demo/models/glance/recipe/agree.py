"""Compares the exported files with the checkpoint: the chat template, rows of pictures, and scores of the next token.

The checkpoint is rounded as it ships. Needs onnxruntime and jinja2.
"""
import argparse
import json
from pathlib import Path

import jinja2
import numpy as np
import onnxruntime
import torch

from places import IMAGE, KEPT_DIR, OUT_DIR
from lesson import lesson
from loader import assemble
from packed import as_packed
from score import load
from sight import to_input
from sight_tokens import PICTURE, encode, tokenizer
from template import dump

PICTURES = 12


def open_graph(name: str):
    return onnxruntime.InferenceSession(str(OUT_DIR / 'onnx' / f'{name}.onnx'), providers=['CPUExecutionProvider'])


def decode(decoder, embeds: np.ndarray, shape) -> np.ndarray:
    """Returns logits of every position, [1, length, vocabulary]."""
    empty = np.zeros((1, shape.num_key_value_heads, 0, shape.head_dim), np.float32)
    past = {f'past_key_values.{layer}.{part}': empty for layer in range(shape.num_hidden_layers) for part in ('key', 'value')}
    feeds = {'inputs_embeds': embeds, 'attention_mask': np.ones(embeds.shape[:2], np.int64), 'num_logits_to_keep': np.array(0, np.int64), **past}
    return decoder.run(['logits'], feeds)[0]


def compare_template():
    """Fails unless the template writes what the training has, whether the picture is the first part or the last."""
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters['tojson'] = dump
    template = env.from_string(json.loads((OUT_DIR / 'tokenizer_config.json').read_text())['chat_template'])
    question, system = {'type': 'text', 'text': 'What is it?'}, {'role': 'system', 'content': 'Be brief.'}
    for before in ([], [system]):
        plain = [*before, {'role': 'user', 'content': 'What is it?', 'picture': True}]
        ours = tokenizer().decode(encode(plain, add_generation_prompt=True)[0]).replace(PICTURE, IMAGE)
        for parts in ([question, {'type': 'image'}], [{'type': 'image'}, question]):
            theirs = template.render(messages=[*before, {'role': 'user', 'content': parts}], add_generation_prompt=True)
            assert theirs == ours, f'The template writes\n{theirs}\ninstead of\n{ours}'


def masks(extents, tile: int) -> np.ndarray:
    """Returns which pixels of each tile its picture takes, [N, 1, tile, tile]."""
    out = np.zeros((len(extents), 1, tile, tile), bool)
    for mask, sides in zip(out, np.rint(extents.numpy() * tile).astype(int)):
        x, y = (tile - sides) // 2
        mask[0, y:y + sides[1], x:x + sides[0]] = True
    return out


@torch.no_grad()
def compare(model):
    encoder, embed, decoder = (open_graph(name) for name in ('vision_encoder', 'embed_tokens', 'decoder_model_merged'))
    sight, shape = model.encoder.s, model.guide.s
    lessons = [lesson(f'agree-{at}', sight, True) for at in range(PICTURES)]
    batch = assemble(lessons, sight, [], None, [], lambda asks: [[asks[0]]] if not asks[0].click else [])
    pixels = to_input(batch.pixels)
    rows = model.see(pixels, batch.extents)
    shipped = encoder.run(None, {'pixel_values': pixels[:, None].contiguous().numpy(), 'pixel_attention_mask': masks(batch.extents, sight.tile)})[0]
    print(f'rows: largest difference {np.abs(shipped - rows.numpy()).max():.6f}, largest number {rows.abs().max():.2f}')
    past, same, of = model.read(rows, batch.prefix), 0, 0
    image = np.flatnonzero(batch.prefix == np.bincount(batch.prefix).argmax())
    for group in batch.groups:
        scores, _ = model.answer(past, group, rows)
        ours = scores.argmax(-1).numpy()
        theirs = []
        for ids, learn, owner in zip(group.ids, group.learn, group.owner):
            embeds = embed.run(None, {'input_ids': np.concatenate([batch.prefix, ids[:-1]])[None]})[0]
            embeds[0, image] = shipped[owner]
            logits = decode(decoder, embeds, shape)[0, len(batch.prefix):]
            theirs += logits[learn[1:]].argmax(-1).tolist()
        same, of = same + int((ours == np.array(theirs)).sum()), of + len(ours)
    print(f'tokens of answers with the same choice: {same} of {of}')


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', type=Path, default=KEPT_DIR)
    compare_template()
    compare(as_packed(load(args.parse_args().checkpoint)[0]))
