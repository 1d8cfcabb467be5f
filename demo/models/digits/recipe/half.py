"""Writes model.fp16.onnx beside model.onnx: the network in half precision, for GPUs that have it.

Finding the ink stays in single precision: its sums over all pixels are beyond what a half can hold.
"""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

# The network reads `crop`, and `logits` is what it says.
FIRST, LAST = 'crop', 'logits'


def halve(path: Path) -> Path:
    model = onnx.load(path)
    graph = model.graph
    names = [node.output[0] for node in graph.node]
    begin, end = names.index(FIRST) + 1, names.index(LAST)
    inside = list(graph.node)[begin:end + 1]
    used = {name for node in inside for name in node.input}
    for weights in graph.initializer:
        if weights.name in used and weights.data_type == T.FLOAT:
            weights.CopyFrom(nh.from_array(nh.to_array(weights).astype(np.float16), weights.name))
    for node in inside:
        rename(node.input, FIRST, 'half_crop')
        rename(node.output, LAST, 'half_logits')
        node.name = node.output[0]
    graph.node.insert(end + 1, h.make_node('Cast', ['half_logits'], [LAST], name=LAST, to=T.FLOAT))
    graph.node.insert(begin, h.make_node('Cast', [FIRST], ['half_crop'], name='half_crop', to=T.FLOAT16))
    onnx.checker.check_model(model, full_check=True)
    half = path.with_suffix('.fp16.onnx')
    half.write_bytes(model.SerializeToString())
    print(f'{half.name}: {half.stat().st_size} bytes')
    return half


def rename(names, old: str, new: str) -> None:
    for place, name in enumerate(names):
        if name == old:
            names[place] = new


if __name__ == '__main__':
    halve(Path(__file__).resolve().parent.parent / 'model.onnx')
