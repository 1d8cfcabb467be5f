"""Writes the reader as one ONNX graph: page in, digit, scores and confidence out."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from model import CROP, FLOOR, PAGE, REACH, Reader


class Graph:
    def __init__(self):
        self.nodes, self.initializers = [], []

    def const(self, name: str, value, dtype=np.float32) -> str:
        self.initializers.append(nh.from_array(np.asarray(value, dtype), name))
        return name

    def __call__(self, op: str, out: str, *inputs: str, **attributes) -> str:
        self.nodes.append(h.make_node(op, list(inputs), [out], name=out, **attributes))
        return out


def strength(g: Graph) -> str:
    """How much ink each pixel holds, 0 to 1; see `find` in model.py."""
    g.const('pixels', [2, 3], np.int64)
    g('ReduceSum', 'whole', 'image', 'pixels', keepdims=1)
    g.const('inside_from', [2, 2], np.int64)
    g.const('inside_to', [PAGE - 2, PAGE - 2], np.int64)
    g('Slice', 'inside', 'image', 'inside_from', 'inside_to', 'pixels')
    g('ReduceSum', 'inner', 'inside', 'pixels', keepdims=1)
    g('Sub', 'edge', 'whole', 'inner')
    g('Mul', 'border', 'edge', g.const('edge_share', 1 / (PAGE**2 - (PAGE - 4) ** 2)))
    g('Equal', 'is_light', 'ink', g.const('light_ink', 2, np.int32))
    g('Equal', 'is_auto', 'ink', g.const('auto_ink', 0, np.int32))
    g('Less', 'border_is_dark', 'border', g.const('half', 0.5))
    g('And', 'found_light', 'is_auto', 'border_is_dark')
    g('Or', 'light', 'is_light', 'found_light')
    g('Where', 'sign', 'light', g.const('plus', 1.0), g.const('minus', -1.0))
    g('Sub', 'over_border', 'image', 'border')
    g('Mul', 'signed', 'over_border', 'sign')
    g('Relu', 'raw_strength', 'signed')
    g('ReduceMax', 'strongest', 'raw_strength', axes=[2, 3], keepdims=1)
    g('Max', 'strongest_or_faint', 'strongest', g.const('faint', 0.2))
    g('Div', 'even_strength', 'raw_strength', 'strongest_or_faint')
    g('Sub', 'over_floor', 'even_strength', g.const('floor', FLOOR))
    g('Relu', 'kept', 'over_floor')
    return g('Mul', 'strength', 'kept', g.const('stretch', 1 / (1 - FLOOR)))


def middle(g: Graph, axis: str, other: int) -> None:
    """Mean place and spread of the ink along one axis."""
    g('ReduceSum', f'{axis}_sums', 'page', g.const(f'{axis}_other', [other], np.int64), keepdims=0)
    g('Mul', f'{axis}_moments', f'{axis}_sums', 'place')
    g('ReduceSum', f'{axis}_moment', f'{axis}_moments', 'axis_1', keepdims=1)
    g('Add', f'{axis}_weighed', f'{axis}_moment', 'half_page')
    g('Div', f'{axis}_mean', f'{axis}_weighed', 'mass')
    g('Sub', f'{axis}_off', 'place', f'{axis}_mean')
    g('Mul', f'{axis}_square', f'{axis}_off', f'{axis}_off')
    g('Mul', f'{axis}_squares', f'{axis}_sums', f'{axis}_square')
    g('ReduceSum', f'{axis}_spread', f'{axis}_squares', 'axis_1', keepdims=1)


def weights(g: Graph, axis: str) -> None:
    """(1, CROP, PAGE): which pixels of the page make up each pixel of the crop."""
    g('Add', f'{axis}_wanted', f'{axis}_mean', 'offsets')
    g('Unsqueeze', f'{axis}_wanted_3d', f'{axis}_wanted', 'axis_2')
    g('Sub', f'{axis}_far', 'place', f'{axis}_wanted_3d')
    g('Abs', f'{axis}_distance', f'{axis}_far')
    g('Div', f'{axis}_share', f'{axis}_distance', 'width')
    g('Sub', f'{axis}_near', 'one', f'{axis}_share')
    g('Relu', f'{axis}_covered', f'{axis}_near')
    g('Div', f'{axis}_weights', f'{axis}_covered', 'width')


def crop(g: Graph) -> str:
    """The ink brought to one size in the middle."""
    g.const('place', np.arange(PAGE)[None] + 0.5)
    g.const('half_page', PAGE / 2)
    g.const('one', 1.0)
    g.const('axis_1', [1], np.int64)
    g.const('axis_2', [2], np.int64)
    g('Reshape', 'page', strength(g), g.const('page_shape', [1, PAGE, PAGE], np.int64))
    g('ReduceSum', 'ink_sum', 'page', g.const('plane', [1, 2], np.int64), keepdims=0)
    g('Reshape', 'ink_sum_2d', 'ink_sum', g.const('one_by_one', [1, 1], np.int64))
    g('Add', 'mass', 'ink_sum_2d', 'one')
    middle(g, 'y', 2)
    middle(g, 'x', 1)
    g('Max', 'spread', 'y_spread', 'x_spread')
    g('Div', 'variance', 'spread', 'mass')
    g('Add', 'some_variance', 'variance', g.const('least_variance', 4.0))
    g('Sqrt', 'deviation', 'some_variance')
    g('Mul', 'step', 'deviation', g.const('reach', 2 * REACH / CROP))
    g('Mul', 'offsets', 'step', g.const('steps', np.arange(CROP)[None] + 0.5 - CROP / 2))
    g('Max', 'step_or_pixel', 'step', 'one')
    g('Unsqueeze', 'width', 'step_or_pixel', 'axis_2')
    weights(g, 'y')
    weights(g, 'x')
    g('MatMul', 'rows', 'y_weights', 'page')
    g('Transpose', 'x_across', 'x_weights', perm=[0, 2, 1])
    g('MatMul', 'sampled', 'rows', 'x_across')
    g('ReduceMax', 'peak', 'sampled', axes=[1, 2], keepdims=1)
    g('Max', 'peak_or_faint', 'peak', g.const('faint_peak', 0.1))
    g('Div', 'even', 'sampled', 'peak_or_faint')
    return g('Reshape', 'crop', 'even', g.const('crop_shape', [1, 1, CROP, CROP], np.int64))


def classify(g: Graph, reader: Reader, seen: str) -> None:
    for i, (kernel, bias) in enumerate(reader.folded()):
        kernel, bias = (g.const(f'{name}_{i}', t.detach().numpy())
                        for name, t in (('kernel', kernel), ('bias', bias)))
        g('Conv', f'conv_{i}', seen, kernel, bias, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        g('Relu', f'relu_{i}', f'conv_{i}')
        seen = g('MaxPool', f'pool_{i}', f'relu_{i}', kernel_shape=[2, 2], strides=[2, 2])
    g('Flatten', 'flat', seen, axis=1)
    for name, layer, source, out in (('hidden', reader.hidden, 'flat', 'hidden'),
                                     ('last', reader.last, 'hidden_relu', 'logits')):
        matrix = g.const(f'{name}_matrix', layer.weight.detach().numpy())
        bias = g.const(f'{name}_bias', layer.bias.detach().numpy())
        g('Gemm', out, source, matrix, bias, transB=1)
        if name == 'hidden':
            g('Relu', 'hidden_relu', 'hidden')
    g('Softmax', 'probabilities', 'logits', axis=1)
    g('Reshape', 'scores', 'probabilities', g.const('ten', [10], np.int64))
    g('ReduceMax', 'confidence', 'scores', axes=[0], keepdims=1)
    g('ArgMax', 'best', 'scores', axis=0, keepdims=1)
    g('Cast', 'digit', 'best', to=T.INT32)


def export(reader: Reader, path: Path) -> None:
    g = Graph()
    classify(g, reader, crop(g))
    graph = h.make_graph(
        g.nodes, 'digits',
        [h.make_tensor_value_info('image', T.FLOAT, [1, 1, PAGE, PAGE]),
         h.make_tensor_value_info('ink', T.INT32, [])],
        [h.make_tensor_value_info('digit', T.INT32, [1]),
         h.make_tensor_value_info('scores', T.FLOAT, [10]),
         h.make_tensor_value_info('confidence', T.FLOAT, [1])],
        g.initializers)
    model = h.make_model(graph, producer_name='inorigin', ir_version=8,
                         opset_imports=[h.make_opsetid('', 17)])
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    print(f'{path.name}: {path.stat().st_size} bytes')
