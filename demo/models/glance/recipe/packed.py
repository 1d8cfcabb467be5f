"""Weights as 8-bit numbers with a scale for each output, which the runtime turns into float32 when it loads the file.

The graphs are a quarter of the size of float32, and all arithmetic is float32 on every device. Vectors and the places of
the cells are stored as float16, as in the guide's file.
"""
import numpy as np
import torch
from onnx import TensorProto as T
from torch import nn

from export import Graph

LARGEST = 127


def pack(array: np.ndarray, axes: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Returns (int8, float32 scales) of an array. `axes` are those that share a scale."""
    scale = np.maximum(np.abs(array).max(axis=axes, keepdims=True), 1e-8).astype(np.float32) / LARGEST
    return np.rint(array / scale).astype(np.int8), scale


@torch.no_grad()
def as_packed(model: nn.Module) -> nn.Module:
    """Rounds the weights in place to what the files hold. Folding the normalization keeps the numbers of a convolution."""
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding, nn.Conv2d)):
            numbers, scale = pack(module.weight.numpy(), tuple(range(1, module.weight.ndim)))
            module.weight.copy_(torch.from_numpy(numbers * scale))
            if getattr(module, 'bias', None) is not None:
                module.bias.copy_(module.bias.half())
        elif isinstance(module, nn.RMSNorm):
            module.weight.copy_(module.weight.half())
    return model


class PackedGraph(Graph):
    def weight(self, name, tensor, axes=(0,)):
        """Returns the name of a weight. A matrix has the axes [inputs, outputs] unless `axes` says which ones share a scale."""
        if tensor.ndim == 1:
            return super().weight(name, tensor)
        numbers, scale = pack(tensor.detach().numpy(), axes)
        self.node('Cast', [self.const(f'{name}_i8', numbers)], [f'{name}_wide'], to=T.FLOAT)
        return self.node('Mul', [f'{name}_wide', self.const(f'{name}_scale', scale)], [name])

    def half(self, name, tensor):
        return super().weight(name, tensor)
