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
from labels import LETTERS
from layers import Convolution
from reader import ALONG, ANY, AROUND, CROWD, CROWDED, HIGHEST, LARGE, Reader
from sight import Block, Glance
from sight_tokens import marker_ids
from template import TEMPLATE

# The template writes the images of a message before its text, as in the training.
TEXT = "{%- elif content -%}{%- for part in content -%}"
IMAGES = "{%- elif content -%}{%- for part in content -%}{%- if part.type == 'image' -%}{{- '<image>' -}}{%- endif -%}{%- endfor -%}{%- for part in content -%}"
# The table of embeddings has one scale for each token.
BY_TOKEN = (1,)


def convolve(g: PackedGraph, name: str, layer: Convolution, x: str, rectified=True) -> str:
    """Adds a convolution, with its normalization folded in, and the rectifier."""
    norm, conv = layer.norm, layer.convolution
    factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    weight = g.weight(f'{name}.weight', conv.weight * factor[:, None, None, None], (1, 2, 3))
    bias = g.weight(f'{name}.bias', norm.bias - norm.running_mean * factor)
    sizes = {'kernel_shape': list(conv.kernel_size), 'strides': list(conv.stride), 'pads': [*conv.padding, *conv.padding], 'dilations': list(conv.dilation)}
    y = g.node('Conv', [x, weight, bias], [f'{name}.y'], **sizes)
    return g.node('Relu', [y], [f'{name}.relu']) if rectified else y


def residual(g: PackedGraph, name: str, layers, x: str) -> str:
    """Adds convolutions whose results are added to their inputs."""
    for number, layer in enumerate(layers):
        x = g.node('Add', [x, convolve(g, f'{name}.{number}', layer, x)], [f'{name}.{number}.end'])
    return x


def see(g: PackedGraph, name: str, stem, x: str) -> str:
    """Adds the stages of a stem."""
    for at, stage in enumerate(stem):
        x = residual(g, f'{name}.{at}', stage.more, convolve(g, f'{name}.{at}', stage.shrink, x))
    return x


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


def flat_cells(g: PackedGraph, name: str, x: str, channels: int, cells: int) -> str:
    """Returns [N, cells, channels] of [N, channels, high, wide]."""
    flat = g.node('Reshape', [x, g.const(f'{name}.flat', np.array([-1, channels, cells], np.int64))], [f'{name}.cells'])
    return g.node('Transpose', [flat], [f'{name}.cells_first'], perm=[0, 2, 1])


def see_letters(g: PackedGraph, reader: Reader, x: str) -> str:
    """Adds the stem of the reader. Returns its cells, [N, channels, high, wide]."""
    x = see(g, 'letters', reader.stem, x)
    large = residual(g, 'large', reader.large, g.node('AveragePool', [x], ['large.pooled'], kernel_shape=LARGE, strides=LARGE))
    back = convolve(g, 'back', reader.back, large, rectified=False)
    spread = g.node('Resize', [back, '', g.const('back.scales', np.array([1, 1, *LARGE], np.float32))], ['back.spread'], mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    return residual(g, 'end', reader.end, g.node('Add', [x, spread], ['back.end']))


def moved(g: PackedGraph, name: str, x: str, down: bool) -> str:
    """Adds a convolution that moves a grid [N, 1, high, wide] by a row."""
    kernel = np.array([down, 0, not down], np.float32).reshape(1, 1, 3, 1)
    return g.node('Conv', [x, g.const(f'{name}.kernel', kernel)], [name], kernel_shape=[3, 1], pads=[1, 0, 1, 0])


def row_numbers(g: PackedGraph, reader: Reader, here: str) -> str:
    """Returns the number of the row of each cell with a letter, from 1, or 0, [N, 1, cells]. See `Reader.row_numbers`."""
    number = lambda name, value: g.const(f'read.{name}', np.array(value, np.float32))
    as_number = lambda x: g.node('Cast', [x], [f'{x}.number'], to=T.FLOAT)
    both = lambda name, *parts: g.node('And', [both(f'{name}.most', *parts[:-1]) if len(parts) > 2 else parts[0], parts[-1]], [f'read.{name}'])
    around = {'kernel_shape': [AROUND] * 2, 'strides': [1, 1], 'pads': [AROUND // 2] * 4}
    likely = g.node('Sigmoid', [here], ['read.likely'])
    share = g.node('AveragePool', [likely], ['read.share'], **around, count_include_pad=1)
    crowded = g.node('Greater', [share, number('crowd', CROWD / AROUND ** 2)], ['read.crowded'])
    least = g.node('Where', [crowded, number('bar_crowded', CROWDED), number('bar_any', ANY)], ['read.least'])
    highest = g.node('GreaterOrEqual', [here, g.node('MaxPool', [here], ['read.near'], **around)], ['read.highest'])
    bar = g.node('Where', [highest, number('bar_highest', HIGHEST), least], ['read.bar'])
    found = g.node('Greater', [here, bar], ['read.found'])
    sure = g.node('Mul', [likely, as_number(found)], ['read.sure'])
    strength = g.node('AveragePool', [sure], ['read.strength'], kernel_shape=[1, ALONG], strides=[1, 1], pads=[0, ALONG // 2] * 2, count_include_pad=1)
    above, below = moved(g, 'read.above', strength, True), moved(g, 'read.below', strength, False)
    more = lambda name, a, b, kind='Greater': g.node(kind, [a, b], [f'read.{name}'])
    up = both('goes_up', found, more('up_stronger', above, strength), more('up_most', above, below, 'GreaterOrEqual'))
    down = both('goes_down', found, more('down_stronger', below, strength), more('down_most', below, above))
    stay = both('remains', found, g.node('Not', [g.node('Or', [up, down], ['read.moves'])], ['read.stays']))
    up, down, stay = map(as_number, (up, down, stay))
    taken = g.node('Max', [stay, moved(g, 'read.from_below', up, False), moved(g, 'read.from_above', down, True)], ['read.taken'])
    flat = g.const('read.flat', np.array([-1, reader.s.cells[0] * reader.s.cells[1]], np.int64))
    grid = g.const('read.grid', np.array([-1, 1, *reader.s.cells], np.int64))
    counted = g.node('CumSum', [g.node('Reshape', [taken, flat], ['read.in_order']), g.const('read.axis', np.array(1, np.int32))], ['read.counted'])
    numbers = g.node('Mul', [g.node('Reshape', [counted, grid], ['read.counts']), taken], ['read.numbers'])
    parts = [g.node('Mul', [x, y], [f'read.part{at}']) for at, (x, y) in enumerate(((numbers, stay), (moved(g, 'read.number_above', numbers, True), up), (moved(g, 'read.number_below', numbers, False), down)))]
    between = g.const('read.one_row', np.array([-1, 1, reader.s.cells[0] * reader.s.cells[1]], np.int64))
    return g.node('Reshape', [g.node('Sum', parts, ['read.place']), between], ['read.places'])


def extent(g: PackedGraph, name: str, s: Sight, across: bool) -> str:
    """Returns the share of a tile's side that its picture takes, [N, 1], from `pixel_attention_mask`."""
    mask = g.node('Reshape', ['mask', g.const(f'{name}.one_tile', np.array([-1, s.tile, s.tile], np.int64))], [f'{name}.mask'])
    lines = g.node('ReduceMax', [mask], [f'{name}.lines'], axes=[1 if across else 2], keepdims=0)
    return g.node('ReduceMean', [lines], [name], axes=[1], keepdims=1)


def share_weights(g: PackedGraph, name: str, share: str, count: int) -> str:
    """Returns the weights of `reader.share_weights`, [N, count, count]."""
    steps = np.arange(count, dtype=np.float32)
    number = lambda part, value: g.const(f'{name}.{part}', np.array(value, np.float32))
    scaled = g.node('Div', [g.const(f'{name}.from_middle', steps[None] + 0.5 - count / 2), share], [f'{name}.scaled'])
    at = g.node('Clip', [g.node('Add', [scaled, number('middle', (count - 1) / 2)], [f'{name}.moved']), number('least', 0), number('most', count - 1)], [f'{name}.at'])
    column = g.node('Reshape', [at, g.const(f'{name}.as_column', np.array([-1, count, 1], np.int64))], [f'{name}.column'])
    far = g.node('Abs', [g.node('Sub', [column, g.const(f'{name}.steps', steps)], [f'{name}.apart'])], [f'{name}.far'])
    return g.node('Relu', [g.node('Sub', [number('one', 1), far], [f'{name}.near'])], [name])


def square_places(g: PackedGraph, encoder) -> str:
    """Returns the places of squares, [N, grid ** 2, channels]. See `Encoder.placed`."""
    grid, channels = encoder.s.grid, encoder.places.shape[-1]
    shape = lambda name, *sizes: g.const(f'places.{name}', np.array(sizes, np.int64))
    down, across = (share_weights(g, f'places.{name}', f'extent.{name}', grid) for name in ('down', 'across'))
    lines = g.node('MatMul', [down, g.half('places', encoder.places.view(grid, grid * channels))], ['places.lines'])
    apart = g.node('Reshape', [lines, shape('by_line', -1, grid, grid, channels)], ['places.apart'])
    wide = g.node('Reshape', [across, shape('each_line', -1, 1, grid, grid)], ['places.wide'])
    return g.node('Reshape', [g.node('MatMul', [wide, apart], ['places.grid']), shape('flat', -1, grid ** 2, channels)], ['places.all'])


def letter_places(g: PackedGraph, reader: Reader) -> str:
    """Returns the places of cells, [N, high * wide, width]. See `Reader.places`."""
    (high, wide), width = reader.s.cells, reader.s.width
    shape = lambda name, *sizes: g.const(f'read.{name}', np.array(sizes, np.int64))
    part = lambda name, table: g.node('MatMul', [share_weights(g, f'read.{name}_shares', f'extent.{name}', len(table)), g.half(f'read.{name}', table)], [f'read.{name}_places'])
    columns = g.node('Reshape', [part('across', reader.across), shape('each_row', -1, 1, wide, width)], ['read.columns'])
    lines = g.node('Reshape', [part('down', reader.down), shape('each_column', -1, high, 1, width)], ['read.lines'])
    return g.node('Reshape', [g.node('Add', [columns, lines], ['read.all_places']), shape('by_place', -1, high * wide, width)], ['read.at'])


def add_reader(g: PackedGraph, model: Glance, x: str) -> str:
    """Adds the reader. Returns the rows of the letters."""
    reader, channels = model.reader, model.reader.s.letters[-1][0]
    cells = reader.s.cells[0] * reader.s.cells[1]
    small = see_letters(g, reader, x)
    head = g.weight('read.head', reader.head.weight[:, :, None, None], (1, 2, 3))
    scores = g.node('Conv', [small, head, g.weight('read.bias', reader.head.bias)], ['read.scores'], kernel_shape=[1, 1])
    letters, here, begins = (f'read.{name}' for name in ('letter', 'here', 'begin'))
    g.node('Split', [scores, g.const('read.parts', np.array([len(LETTERS), 1, 1], np.int64))], [letters, here, begins], axis=1)
    shares = g.node('Softmax', [flat_cells(g, letters, letters, len(LETTERS), cells)], ['read.shares'], axis=-1)
    known = g.node('MatMul', [shares, g.weight('read.letters', model.letter_embeddings(), (1,))], ['read.embedded'])
    known = g.node('Add', [known, multiply(g, 'read.more', reader.more.weight, flat_cells(g, 'read.small', small, channels, cells))], ['read.known'])
    first = g.node('Sigmoid', [flat_cells(g, begins, begins, 1, cells)], ['read.first'])
    known = g.node('Add', [known, g.node('Mul', [first, g.weight('read.begins', reader.begins)], ['read.first_row'])], ['read.word'])
    places = letter_places(g, reader)
    order = g.const('read.order', np.arange(1, reader.s.text + 1, dtype=np.float32)[:, None])
    chosen = g.node('Cast', [g.node('Equal', [row_numbers(g, reader, here), order], ['read.is_row'])], ['read.chosen'], to=T.FLOAT)
    return g.node('MatMul', [chosen, g.node('Add', [known, places], ['read.all'])], ['read.rows'])


def vision_encoder(model: Glance) -> onnx.ModelProto:
    """Returns the graph from `pixel_values` [batch_size, tiles, 3, tile, tile] to `image_features` [batch_size * tiles, rows, width].

    `pixel_attention_mask` [batch_size, tiles, tile, tile] is true for the pixels of the picture.
    """
    encoder, g = model.encoder, PackedGraph()
    s, squares = encoder.s, encoder.s.grid ** 2
    inner = s.stem[-1][0]
    g.inputs = [h.make_tensor_value_info('pixel_values', T.FLOAT, ['batch_size', 'tiles', 3, s.tile, s.tile]), h.make_tensor_value_info('pixel_attention_mask', T.BOOL, ['batch_size', 'tiles', s.tile, s.tile])]
    g.outputs = [h.make_tensor_value_info('image_features', T.FLOAT, ['all_tiles', s.rows, s.width])]
    x = g.node('Reshape', ['pixel_values', g.const('one_tile', np.array([-1, 3, s.tile, s.tile], np.int64))], ['pixels'])
    g.node('Cast', ['pixel_attention_mask'], ['mask'], to=T.FLOAT)
    for name in ('across', 'down'):
        extent(g, f'extent.{name}', s, name == 'across')
    text = add_reader(g, model, x)
    x = flat_cells(g, 'stem', see(g, 'stem', encoder.stem, x), inner, squares)
    x = g.node('Add', [x, square_places(g, encoder)], ['placed'])
    for at, block in enumerate(encoder.blocks):
        x = transform(g, f'blocks.{at}', block, x, squares)
    rows = multiply(g, 'connect', encoder.connect.weight, normalize(g, 'norm', encoder.norm, x))
    g.node('Concat', [rows, text], ['image_features'], axis=1)
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
        'preprocessor_config.json': {'do_image_splitting': False, 'max_image_size': {'longest_edge': s.tile}, 'size': {'longest_edge': s.tile}, 'image_aspect_ratio': 'pad', 'resample': 1, 'image_mean': [0.5] * 3, 'image_std': [0.5] * 3},
        'processor_config.json': {'image_seq_len': s.rows},
        'tokenizer.json': renamed,
        'tokenizer_config.json': config,
    }


def ship(model: Glance, out=OUT_DIR) -> int:
    """Writes all files. Returns the bytes of the graphs."""
    os.makedirs(out / 'onnx', exist_ok=True)
    graphs = {'vision_encoder': vision_encoder(model), 'embed_tokens': embed_tokens(model), 'decoder_model_merged': decoder(model)}
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
