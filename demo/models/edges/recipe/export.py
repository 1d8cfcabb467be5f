"""Writes the graphs: export.py [--out FOLDER]. There is nothing to train, so --quick does the same."""
import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from reference import MODES, pair


class Graph:
    def __init__(self, half: bool):
        self.nodes, self.initializers = [], []
        self.type = T.FLOAT16 if half else T.FLOAT
        self.numbers = np.float16 if half else np.float32

    def const(self, name: str, value, dtype=None) -> str:
        array = np.asarray(value, dtype or self.numbers)
        self.initializers.append(nh.from_array(array, name))
        return name

    def __call__(self, op: str, out: str, *inputs: str, **attributes) -> str:
        self.nodes.append(h.make_node(op, list(inputs), [out], name=out, **attributes))
        return out

    def own(self, name: str) -> str:
        """An input in the precision of the arithmetic."""
        return self('Cast', f'{name}_number', name, to=self.type)


def kernels(g: Graph) -> str:
    """The pair of the mode, (2, 1, 3, 3)."""
    fixed = [pair(mode, np.zeros((3, 3))) for mode in MODES[:-1]]
    g('Reshape', 'own_kernel', g.own('kernel'), g.const('one_kernel', [1, 1, 3, 3], np.int64))
    g('Concat', 'own_pair', 'own_kernel', g.const('nothing', np.zeros((1, 1, 3, 3))), axis=1)
    g('Concat', 'pairs', g.const('bank', np.stack(fixed)), 'own_pair', axis=0)
    g('Gather', 'chosen', 'pairs', 'mode', axis=0)
    return g('Reshape', 'kernels', 'chosen', g.const('two_kernels', [2, 1, 3, 3], np.int64))


def lines(g: Graph) -> str:
    """How much of a line each pixel is, 0 to 1."""
    g('Reshape', 'shares', g.own('weights'), g.const('three_channels', [1, 3, 1, 1], np.int64))
    g('Mul', 'weighed', 'image', 'shares')
    g('ReduceSum', 'grey', 'weighed', g.const('channels', [1], np.int64), keepdims=1)
    g('Pad', 'padded', 'grey', g.const('around', [0, 0, 1, 1, 0, 0, 1, 1], np.int64), mode='edge')
    g('Conv', 'slopes', 'padded', kernels(g), kernel_shape=[3, 3])
    g('Mul', 'squares', 'slopes', 'slopes')
    g('ReduceSum', 'square', 'squares', 'channels', keepdims=1)
    g('Sqrt', 'slope', 'square')
    g('Mul', 'stronger', 'slope', g.own('strength'))
    return g('Clip', 'lines', 'stronger', g.const('zero', 0), g.const('one', 1))


def draw(g: Graph) -> None:
    """Light lines on black or on the image; dark ones on white or on the image when inverted."""
    lines(g)
    g('Cast', 'paper_colour', 'invert', to=g.type)
    g('Sub', 'ink', 'one', 'paper_colour')
    g('Equal', 'on_image', 'mode', g.const('outline', MODES.index('outline'), np.int32))
    g('Where', 'paper', 'on_image', 'image', 'paper_colour')
    g('Sub', 'difference', 'ink', 'paper')
    g('Mul', 'drawn', 'difference', 'lines')
    g('Add', 'edges', 'paper', 'drawn')


def export(path: Path, half: bool) -> None:
    g = Graph(half)
    draw(g)
    pixels = [1, 3, 'height', 'width']
    graph = h.make_graph(
        g.nodes, 'edges',
        [h.make_tensor_value_info('image', g.type, pixels),
         h.make_tensor_value_info('strength', T.FLOAT, []),
         h.make_tensor_value_info('mode', T.INT32, []),
         h.make_tensor_value_info('invert', T.BOOL, []),
         h.make_tensor_value_info('weights', T.FLOAT, [3]),
         h.make_tensor_value_info('kernel', T.FLOAT, [3, 3])],
        [h.make_tensor_value_info('edges', g.type, pixels)],
        g.initializers)
    model = h.make_model(graph, producer_name='inorigin', ir_version=8,
                         opset_imports=[h.make_opsetid('', 17)])
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    print(f'{path.name}: {path.stat().st_size} bytes')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--quick', action='store_true', help='accepted as by the other recipes')
    parser.add_argument('--out', type=Path, default=Path(__file__).resolve().parent.parent)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    export(out / 'model.onnx', half=False)
    export(out / 'model.fp16.onnx', half=True)


if __name__ == '__main__':
    main()
