"""Reads the guide's weights from its ONNX file, with which the decoder begins."""
import numpy as np
import onnx
import torch
from onnx import numpy_helper

from places import GUIDE
from model import Guide
from settings import Shape

NORMS = {'first_norm': 'layers.0.input_layernorm.weight'}


def name_of(stored: str, layers: int) -> str:
    """Returns the name of a weight in the model, by its name in the file."""
    if stored in NORMS:
        return NORMS[stored]
    if stored == 'embed_tokens':
        return 'embed_tokens.weight'
    layer, name = stored[1:].split('.', 1)
    if name == 'post_norm':
        return f'layers.{layer}.post_attention_layernorm.weight'
    if name == 'next_norm':
        return 'norm.weight' if int(layer) + 1 == layers else f'layers.{int(layer) + 1}.input_layernorm.weight'
    return f'layers.{layer}.{name}.weight'


def guide() -> Guide:
    """Returns the guide as it is shipped."""
    model, state = Guide(Shape()), {}
    for tensor in onnx.load(GUIDE / 'onnx' / 'model.onnx').graph.initializer:
        if tensor.name.endswith('_f16'):
            weight = torch.from_numpy(numpy_helper.to_array(tensor).astype(np.float32))
            name = name_of(tensor.name.removesuffix('_f16'), model.s.num_hidden_layers)
            # The file has matrices transposed, but for the table of embeddings.
            state[name] = weight.T.contiguous() if weight.ndim == 2 and name != 'embed_tokens.weight' else weight
    model.load_state_dict(state)
    return model
