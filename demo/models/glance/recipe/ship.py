"""Writes the model in the layout of idefics3: three graphs, the configurations, and the guide's tokenizer with markers."""
import argparse
import json
import math
import os
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto as T, helper as h

from places import GUIDE, KEPT_DIR, MARKERS, OUT_DIR, Sight
from export import begin, configs, decode, finish, integers
from packed import PackedGraph
from score import load
from settings import RESERVED
from sight import Block, Convolution, Encoder, Glance
from sight_tokens import marker_ids
from template import TEMPLATE

# The template writes the images of a message before its text, as in the training.
TEXT = "{%- elif content -%}{%- for part in content -%}"
IMAGES = "{%- elif content -%}{%- for part in content -%}{%- if part.type == 'image' -%}{{- '<image>' -}}{%- endif -%}{%- endfor -%}{%- for part in content -%}"
# The table of embeddings has one scale for each token.
BY_TOKEN = (1,)


def convolve(g: PackedGraph, name: str, layer: Convolution, x: str) -> str:
    """Adds a convolution, with its normalization folded in, and the rectifier."""
    norm, conv = layer.norm, layer.convolution
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    weight = g.weight(f'{name}.weight', conv.weight * factor[:, None, None, None], (1, 2, 3))
    bias = g.weight(f'{name}.bias', norm.bias - norm.running_mean * factor)
    padding = [conv.padding[0]] * 4
    y = g.node('Conv', [x, weight, bias], [f'{name}.y'], kernel_shape=list(conv.kernel_size), strides=list(conv.stride), pads=padding)
    return g.node('Relu', [y], [f'{name}.relu'])


def normalize(g: PackedGraph, name: str, norm, x: str) -> str:
    return g.node('SimplifiedLayerNormalization', [x, g.weight(f'{name}.weight', norm.weight)], [f'{name}.y'], axis=-1, epsilon=norm.eps)


def multiply(g: PackedGraph, name: str, weight, x: str) -> str:
    return g.node('MatMul', [x, g.weight(f'{name}.weight', weight.T)], [f'{name}.y'])


def attend(g: PackedGraph, name: str, block: Block, x: str, cells: int) -> str:
    """Adds attention of all cells to all. The scale is part of the queries' weights."""
    width = block.out.weight.shape[0]
    size = width // block.heads
    apart = g.const(f'{name}.apart', np.array([-1, cells, block.heads, size], np.int64))
    together = g.const(f'{name}.together', np.array([-1, cells, width], np.int64))
    q, k, v = block.qkv.weight.chunk(3)

    def part(letter, weight, perm):
        y = g.node('Reshape', [multiply(g, f'{name}.{letter}', weight, x), apart], [f'{name}.{letter}.apart'])
        return g.node('Transpose', [y], [f'{name}.{letter}.heads'], perm=perm)

    scores = g.node('MatMul', [part('q', q / math.sqrt(size), [0, 2, 1, 3]), part('k', k, [0, 2, 3, 1])], [f'{name}.scores'])
    shares = g.node('Softmax', [scores], [f'{name}.shares'], axis=-1)
    mixed = g.node('MatMul', [shares, part('v', v, [0, 2, 1, 3])], [f'{name}.mixed'])
    joined = g.node('Reshape', [g.node('Transpose', [mixed], [f'{name}.back'], perm=[0, 2, 1, 3]), together], [f'{name}.joined'])
    return multiply(g, f'{name}.out', block.out.weight, joined)


def transform(g: PackedGraph, name: str, block: Block, x: str, cells: int) -> str:
    mixed = attend(g, name, block, normalize(g, f'{name}.attention_norm', block.attention_norm, x), cells)
    x = g.node('Add', [x, mixed], [f'{name}.x'])
    up = multiply(g, f'{name}.up', block.up.weight, normalize(g, f'{name}.mlp_norm', block.mlp_norm, x))
    down = multiply(g, f'{name}.down', block.down.weight, g.node('Relu', [up], [f'{name}.relu']))
    return g.node('Add', [x, down], [f'{name}.end'])


def vision_encoder(encoder: Encoder) -> onnx.ModelProto:
    """Returns the graph from `pixel_values` [batch_size, tiles, 3, tile, tile] to `image_features` [batch_size * tiles, rows, width]."""
    s, g = encoder.s, PackedGraph()
    inner = s.stem[-1][0]
    g.inputs = [h.make_tensor_value_info('pixel_values', T.FLOAT, ['batch_size', 'tiles', 3, s.tile, s.tile])]
    g.outputs = [h.make_tensor_value_info('image_features', T.FLOAT, ['all_tiles', s.rows, s.width])]
    x = g.node('Reshape', ['pixel_values', g.const('one_tile', np.array([-1, 3, s.tile, s.tile], np.int64))], ['pixels'])
    for at, stage in enumerate(encoder.stem):
        x = convolve(g, f'stem.{at}', stage.shrink, x)
        for number, layer in enumerate(stage.more):
            x = g.node('Add', [x, convolve(g, f'stem.{at}.{number}', layer, x)], [f'stem.{at}.{number}.end'])
    x = g.node('Reshape', [x, g.const('flat', np.array([-1, inner, s.rows], np.int64))], ['cells'])
    x = g.node('Transpose', [x], ['cells_first'], perm=[0, 2, 1])
    x = g.node('Add', [x, g.half('places', encoder.places)], ['placed'])
    for at, block in enumerate(encoder.blocks):
        x = transform(g, f'blocks.{at}', block, x, s.rows)
    rows = multiply(g, 'connect', encoder.connect.weight, normalize(g, 'norm', encoder.norm, x))
    g.node('Identity', [rows], ['image_features'])
    return finish(g, 'vision_encoder')


def embed_tokens(model: Glance) -> onnx.ModelProto:
    g, width = PackedGraph(), model.guide.s.hidden_size
    g.inputs = [integers('input_ids', ['batch_size', 'sequence_length'])]
    g.outputs = [h.make_tensor_value_info('inputs_embeds', T.FLOAT, ['batch_size', 'sequence_length', width])]
    g.node('Gather', [g.weight('embed_tokens', model.guide.embed_tokens.weight, BY_TOKEN), 'input_ids'], ['inputs_embeds'])
    return finish(g, 'embed_tokens')


def decoder(model: Glance) -> onnx.ModelProto:
    s, g = model.guide.s, PackedGraph()
    g.inputs = [h.make_tensor_value_info('inputs_embeds', T.FLOAT, ['batch_size', 'sequence_length', s.hidden_size]), integers('attention_mask', ['batch_size', 'total_sequence_length'])]
    begin(g, model.guide)
    decode(g, model.guide, 'inputs_embeds', g.weight('embed_tokens', model.guide.embed_tokens.weight, BY_TOKEN))
    return finish(g, 'decoder_model_merged')


def texts(model: Glance) -> dict:
    """Returns the small files by name."""
    s: Sight = model.encoder.s
    text, generation = configs(model.guide.s)
    renamed = json.loads((GUIDE / 'tokenizer.json').read_text())
    for token in renamed['added_tokens']:
        token['content'] = dict(zip(RESERVED, MARKERS)).get(token['content'], token['content'])
    config = json.loads((GUIDE / 'tokenizer_config.json').read_text())
    config['added_tokens_decoder'] = {str(token['id']): {k: v for k, v in token.items() if k != 'id'} for token in renamed['added_tokens']}
    config['additional_special_tokens'] = [dict(zip(RESERVED, MARKERS)).get(token, token) for token in config['additional_special_tokens']]
    config['chat_template'] = TEMPLATE.replace(TEXT, IMAGES)
    assert config['chat_template'] != TEMPLATE, 'the guide\'s template has changed'
    ids = {name: text[name] for name in ('bos_token_id', 'eos_token_id', 'pad_token_id')}
    return {
        'config.json': {'architectures': ['Idefics3ForConditionalGeneration'], 'model_type': 'idefics3', 'image_token_id': marker_ids()['<image>'], 'scale_factor': 1, **ids,
                        'vision_config': {'image_size': s.tile, 'patch_size': s.tile // s.grid}, 'text_config': text},
        'generation_config.json': generation,
        'preprocessor_config.json': {'do_image_splitting': False, 'max_image_size': {'longest_edge': s.tile}, 'size': {'longest_edge': s.tile}, 'resample': 1, 'image_mean': [0.5] * 3, 'image_std': [0.5] * 3},
        'processor_config.json': {'image_seq_len': s.rows},
        'tokenizer.json': renamed,
        'tokenizer_config.json': config,
    }


def ship(model: Glance, out=OUT_DIR) -> int:
    """Writes all files. Returns the bytes of the graphs."""
    os.makedirs(out / 'onnx', exist_ok=True)
    graphs = {'vision_encoder': vision_encoder(model.encoder), 'embed_tokens': embed_tokens(model), 'decoder_model_merged': decoder(model)}
    for name, graph in graphs.items():
        onnx.save(graph, out / 'onnx' / f'{name}.onnx')
    for name, value in texts(model).items():
        (out / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + '\n')
    return sum((out / 'onnx' / f'{name}.onnx').stat().st_size for name in graphs)


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', type=Path, default=KEPT_DIR)
    model, at = load(args.parse_args().checkpoint)
    print(f'{ship(model):,} bytes of graphs, from {at}')
