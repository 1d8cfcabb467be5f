"""Makes a checkpoint from the exported files, from which `learn.py --from` can go on.

The files have no head of the auxiliary loss, and the normalization is folded into their convolutions. The head is fitted, and
the statistics of the normalization are measured, on drawn pictures.
"""
import argparse
import json
import math
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from places import KEPT_DIR, OUT_DIR, Sight
from guide_weights import name_of
from learn import found_loss
from lesson import lesson
from layers import Convolution
from settings import Shape
from sight import Glance, to_input

# Pictures for the statistics, and for the head; passes over the latter, and pictures of a step.
MEASURED, FITTED, PASSES, STEP = 96, 1600, 6, 32


class Stored:
    """The weights of a file by name."""

    def __init__(self, name: str):
        graph = onnx.load(OUT_DIR / 'onnx' / f'{name}.onnx').graph
        self.arrays = {each.name: numpy_helper.to_array(each) for each in graph.initializer}

    def half(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.arrays[f'{name}_f16'].astype(np.float32))

    def packed(self, name: str) -> torch.Tensor:
        return torch.from_numpy(self.arrays[f'{name}_i8'] * self.arrays[f'{name}_scale'])

    def matrix(self, name: str) -> torch.Tensor:
        """Returns a matrix as torch has it, [outputs, inputs]."""
        return self.packed(f'{name}.weight').T


def convolutions(model: Glance) -> dict[str, Convolution]:
    """Returns all convolutions by their names in the file."""
    reader, out = model.reader, {'back': model.reader.back}
    for name, stem in (('stem', model.encoder.stem), ('letters', reader.stem)):
        for at, stage in enumerate(stem):
            out[f'{name}.{at}'] = stage.shrink
            out |= {f'{name}.{at}.{number}': layer for number, layer in enumerate(stage.more)}
    for name, layers in (('large', reader.large), ('end', reader.end)):
        out |= {f'{name}.{number}': layer for number, layer in enumerate(layers)}
    return out


@torch.no_grad()
def read_encoder(model: Glance, stored: Stored):
    """Sets the weights of the encoder and the reader. The normalization changes nothing at first."""
    for name, layer in convolutions(model).items():
        layer.convolution.weight.copy_(stored.packed(f'{name}.weight'))
        layer.norm.bias.copy_(stored.half(f'{name}.bias'))
        layer.norm.running_var.fill_(1 - layer.norm.eps)
    encoder, reader = model.encoder, model.reader
    for at, block in enumerate(encoder.blocks):
        name, size = f'blocks.{at}', block.out.weight.shape[0] // block.heads
        q, k, v = (stored.matrix(f'{name}.{part}') for part in 'qkv')
        block.qkv.weight.copy_(torch.cat([q * math.sqrt(size), k, v]))
        for part in ('out', 'up', 'down'):
            getattr(block, part).weight.copy_(stored.matrix(f'{name}.{part}'))
        for part in ('attention_norm', 'mlp_norm'):
            getattr(block, part).weight.copy_(stored.half(f'{name}.{part}.weight'))
    encoder.norm.weight.copy_(stored.half('norm.weight'))
    encoder.connect.weight.copy_(stored.matrix('connect'))
    encoder.places.copy_(stored.half('places').view_as(encoder.places))
    reader.head.weight.copy_(stored.packed('read.head')[:, :, 0, 0])
    reader.head.bias.copy_(stored.half('read.bias'))
    reader.more.weight.copy_(stored.matrix('read.more'))
    for name in ('begins', 'across', 'down'):
        getattr(reader, name).copy_(stored.half(f'read.{name}'))


@torch.no_grad()
def read_decoder(model: Glance, stored: Stored):
    layers, state = model.guide.s.num_hidden_layers, {}
    for stem in {name.rsplit('_', 1)[0] for name in stored.arrays}:
        if f'{stem}_f16' in stored.arrays:
            state[name_of(stem, layers)] = stored.half(stem)
        elif f'{stem}_i8' in stored.arrays:
            state[name_of(stem, layers)] = stored.packed(stem) if stem == 'embed_tokens' else stored.packed(stem).T
    model.guide.load_state_dict(state)


def drawn(count: int, sight: Sight):
    """Yields (pixels, extents, labels) of drawn pictures."""
    for start in range(0, count, STEP):
        lessons = [lesson(f'restore-{start + at}', sight) for at in range(STEP)]
        yield [torch.from_numpy(np.stack([getattr(each, name) for each in lessons])) for name in ('pixels', 'extent', 'labels')]


@torch.no_grad()
def measure(model: Glance):
    """Sets the statistics of the normalization to those of pictures, so that it keeps its results."""
    outputs, layers = {}, convolutions(model).values()
    hooks = [layer.convolution.register_forward_hook(lambda _, __, out, layer=layer: outputs.setdefault(layer, []).append(out.transpose(0, 1).flatten(1))) for layer in layers]
    for pixels, extents, _ in drawn(MEASURED, model.encoder.s):
        model.see(to_input(pixels), extents)
    for hook in hooks:
        hook.remove()
    for layer, parts in outputs.items():
        values, norm = torch.cat(parts, 1), layer.norm
        norm.running_mean.copy_(values.mean(1))
        norm.running_var.copy_(values.var(1))
        norm.weight.copy_((norm.running_var + norm.eps).sqrt())
        norm.bias.add_(norm.running_mean)


def fit_head(model: Glance):
    """Fits the head of the auxiliary loss to the rows of pictures."""
    with torch.no_grad():
        seen = [(model.encoder(to_input(pixels), extents), labels) for pixels, extents, labels in drawn(FITTED, model.encoder.s)]
    adam = torch.optim.Adam(model.head.parameters(), lr=1e-3)
    for _ in range(PASSES):
        losses = []
        for rows, labels in seen:
            losses.append(found_loss(model.labels(rows), labels))
            adam.zero_grad()
            losses[-1].backward()
            adam.step()
        print(f'loss of the head {torch.stack(losses).mean():.4f}', flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--folder', type=Path, default=KEPT_DIR, help='folder of the new checkpoint')
    folder = args.parse_args().folder
    model = Glance(Sight(), Shape()).eval()
    read_encoder(model, Stored('vision_encoder'))
    read_decoder(model, Stored('decoder_model_merged'))
    measure(model)
    fit_head(model)
    folder.mkdir(parents=True, exist_ok=True)
    state = model.state_dict()
    decoder = {name: value for name, value in state.items() if name.startswith('guide.')}
    torch.save(decoder, folder / 'decoder.pt')
    torch.save({name: value for name, value in state.items() if name not in decoder}, folder / 'encoder.pt')
    at = {'step': 0, 'batch': 0, 'shard': 0, 'spent': 0.0, 'pictures': 0, 'tokens': 0}
    (folder / 'glance.json').write_text(json.dumps({'at': at, 'sight': asdict(model.encoder.s), 'shape': asdict(model.guide.s)}))


if __name__ == '__main__':
    main()
