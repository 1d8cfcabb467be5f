"""Writes the embedder as ONNX: tokens in, unit vectors out. One table of bytes serves both graphs."""
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from model import Embedder, REACH, SIZE

TABLE = 'table.bin'


def quantised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows as bytes, and what a unit of each row's is worth."""
    scale = np.maximum(np.abs(table).max(1, keepdims=True) / 127, 1e-8).astype(np.float16)
    return np.clip(np.round(table / scale.astype(np.float32)), -127, 127).astype(np.int8), scale


def rounded(model: Embedder) -> None:
    """Makes the weights what the files hold, so that they are what is measured."""
    with torch.no_grad():
        bytes_, scale = quantised(model.table.weight.numpy())
        model.table.weight.copy_(torch.from_numpy(bytes_ * scale.astype(np.float32)))
        for name, weights in model.named_parameters():
            if name != 'table.weight':
                weights.copy_(weights.half().float())


class Graph:
    """Weights are kept as halves; the runtime makes them what the arithmetic needs when it loads."""

    def __init__(self, half: bool):
        self.nodes, self.initializers = [], []
        self.type = T.FLOAT16 if half else T.FLOAT

    def const(self, name: str, value, dtype) -> str:
        self.initializers.append(nh.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, name: str, value) -> str:
        array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
        self.const(f'{name}_half', array, np.float16)
        return f'{name}_half' if self.type == T.FLOAT16 else self('Cast', name, f'{name}_half', to=T.FLOAT)

    def __call__(self, op: str, out: str, *inputs: str, **attributes) -> str:
        self.nodes.append(h.make_node(op, list(inputs), [out], name=out, **attributes))
        return out


def look_up(g: Graph, scale: np.ndarray) -> str:
    """What each token is on its own."""
    g('Gather', 'bytes', 'table', 'ids', axis=0)
    g('Cast', 'numbers', 'bytes', to=g.type)
    g('Gather', 'worth', g.weights('scale', scale), 'ids', axis=0)
    return g('Mul', 'alone', 'numbers', 'worth')


def look_around(g: Graph, model: Embedder) -> str:
    """What each token is beside its neighbours."""
    g('LayerNormalization', 'even', 'alone', g.weights('gain', model.norm.weight),
      g.weights('shift', model.norm.bias), axis=-1, epsilon=1e-5)
    g('Mul', 'there', 'even', 'here')
    g('Transpose', 'by_channel', 'there', perm=[0, 2, 1])
    g('Conv', 'mixed', 'by_channel', g.weights('around', model.around.weight),
      g.weights('around_bias', model.around.bias), kernel_shape=[REACH],
      pads=[REACH // 2, REACH // 2], group=SIZE)
    g('Transpose', 'by_token', 'mixed', perm=[0, 2, 1])
    g('MatMul', 'widened', 'by_token', g.weights('wide', model.wide.weight.T))
    g('Add', 'wide_sum', 'widened', g.weights('wide_bias', model.wide.bias))
    g('Relu', 'active', 'wide_sum')
    g('MatMul', 'narrowed', 'active', g.weights('narrow', model.narrow.weight.T))
    g('Add', 'narrow_sum', 'narrowed', g.weights('narrow_bias', model.narrow.bias))
    return g('Add', 'read', 'alone', 'narrow_sum')


def gather(g: Graph, model: Embedder) -> None:
    """The weighed sum of the tokens, made one long; sums of halves would run over."""
    g('Gather', 'known', g.weights('weigh', model.weigh.weight), 'ids', axis=0)
    g('MatMul', 'found', 'read', g.weights('matter', model.matter.weight.T))
    g('Add', 'found_sum', 'found', g.weights('matter_bias', model.matter.bias))
    g('Add', 'matters', 'known', 'found_sum')
    g('Sigmoid', 'share', 'matters')
    g('Mul', 'share_here', 'share', 'here')
    g('Mul', 'weighed', 'read', 'share_here')
    g('Cast', 'weighed_single', 'weighed', to=T.FLOAT)
    g('ReduceSum', 'whole', 'weighed_single', g.const('second', [1], np.int64), keepdims=0)
    g('Mul', 'squares', 'whole', 'whole')
    g('ReduceSum', 'square', 'squares', 'second', keepdims=1)
    g('Add', 'some_square', 'square', g.const('little', 1e-12, np.float32))
    g('Sqrt', 'length', 'some_square')
    g('Div', 'vector', 'whole', 'length')
    g('ReduceSum', 'count', 'mask', 'second', keepdims=0)
    g('Cast', 'tokens', 'count', to=T.INT32)


def write(model: Embedder, path: Path, table: np.ndarray, scale: np.ndarray, half: bool) -> None:
    g = Graph(half)
    g('Cast', 'mask_number', 'mask', to=g.type)
    g('Unsqueeze', 'here', 'mask_number', g.const('last', [-1], np.int64))
    look_up(g, scale)
    look_around(g, model)
    gather(g, model)
    external = T(name='table', data_type=T.INT8, dims=table.shape, data_location=T.EXTERNAL)
    for key, value in (('location', TABLE), ('offset', '0'), ('length', str(table.nbytes))):
        external.external_data.add(key=key, value=value)
    graph = h.make_graph(
        g.nodes, 'embed',
        [h.make_tensor_value_info(name, T.INT64, ['texts', 'length']) for name in ('ids', 'mask')],
        [h.make_tensor_value_info('vector', T.FLOAT, ['texts', SIZE]),
         h.make_tensor_value_info('tokens', T.INT32, ['texts'])],
        [*g.initializers, external])
    whole = h.make_model(graph, producer_name='inorigin', ir_version=8,
                         opset_imports=[h.make_opsetid('', 17)])
    path.write_bytes(whole.SerializeToString())
    onnx.checker.check_model(str(path))
    print(f'{path.name}: {path.stat().st_size} bytes')


def export(model: Embedder, folder: Path) -> None:
    table, scale = quantised(model.table.weight.detach().numpy())
    (folder / TABLE).write_bytes(table.tobytes())
    print(f'{TABLE}: {table.nbytes} bytes')
    write(model, folder / 'model.onnx', table, scale, half=False)
    write(model, folder / 'model.fp16.onnx', table, scale, half=True)
