"""Write onnx/model.onnx, config.json and generation_config.json in the layout of the hub's ONNX decoders.

Weights are stored as float16 and cast to float32 inside the graph. The runtime folds those casts when it
loads the file, so the download is half the size and all arithmetic is float32 on every device.
"""
import argparse
import json
import os
from dataclasses import asdict

import numpy as np
import onnx
import torch
from onnx import TensorProto as T, helper as h, numpy_helper as nh

from model import Guide
from settings import ADDED, MODEL_DIR, WORK_DIR, Shape

MS = 'com.microsoft'


class Graph:
    def __init__(self):
        self.nodes, self.inits, self.inputs, self.outputs = [], [], [], []

    def const(self, name, array):
        self.inits.append(nh.from_array(array, name))
        return name

    def weight(self, name, tensor):
        self.const(name + '_f16', tensor.detach().numpy().astype(np.float16))
        return self.node('Cast', [name + '_f16'], [name], to=T.FLOAT)

    def node(self, op, inputs, outputs, domain='', **attributes):
        self.nodes.append(h.make_node(op, inputs, outputs, name='/' + outputs[0], domain=domain, **attributes))
        return outputs[0]


def head(g: Graph, s: Shape):
    """Lengths from the mask: GroupQueryAttention takes positions from them."""
    one, axis = g.const('one', np.array([1], np.int64)), g.const('axis_1', np.array([1], np.int64))
    g.node('ReduceSum', ['attention_mask', axis], ['mask_sum'], keepdims=0)
    g.node('Sub', ['mask_sum', one], ['last_position'])
    g.node('Cast', ['last_position'], ['seqlens_k'], to=T.INT32)
    g.node('Shape', ['attention_mask'], ['mask_shape'])
    g.node('Gather', ['mask_shape', g.const('index_1', np.array(1, np.int64))], ['total_length'], axis=0)
    g.node('Cast', ['total_length'], ['total_sequence_length_i32'], to=T.INT32)


def block(g: Graph, s: Shape, i: int, w: dict, x: str, n: str):
    """One layer: takes the residual x and its norm n, returns the next pair."""
    lin = lambda name, src, out: g.node('MatMul', [src, g.weight(f'l{i}.{name}', w[f'layers.{i}.{name}.weight'].T)], [out])
    q, k, v = (lin(f'self_attn.{c}_proj', n, f'l{i}.{c}') for c in 'qkv')
    past = [f'past_key_values.{i}.key', f'past_key_values.{i}.value']
    present = [f'present.{i}.key', f'present.{i}.value']
    g.node('GroupQueryAttention', [q, k, v, *past, 'seqlens_k', 'total_sequence_length_i32', 'cos_cache', 'sin_cache'],
           [f'l{i}.attention', *present], MS, num_heads=s.num_attention_heads, kv_num_heads=s.num_key_value_heads,
           do_rotary=1, rotary_interleaved=0)
    kv = lambda name, dim: h.make_tensor_value_info(name, T.FLOAT, ['batch_size', s.num_key_value_heads, dim, s.head_dim])
    g.inputs += [kv(p, 'past_sequence_length') for p in past]
    g.outputs += [kv(p, 'total_sequence_length') for p in present]
    o = lin('self_attn.o_proj', f'l{i}.attention', f'l{i}.o')
    post = g.weight(f'l{i}.post_norm', w[f'layers.{i}.post_attention_layernorm.weight'])
    g.node('SkipSimplifiedLayerNormalization', [x, o, post], [f'l{i}.m', '', '', f'l{i}.r'], MS, epsilon=s.rms_norm_eps)
    gate, up = lin('gate_proj', f'l{i}.m', f'l{i}.gate'), lin('up_proj', f'l{i}.m', f'l{i}.up')
    g.node('Sigmoid', [gate], [f'l{i}.sigmoid'])
    g.node('Mul', [gate, f'l{i}.sigmoid'], [f'l{i}.silu'])
    g.node('Mul', [f'l{i}.silu', up], [f'l{i}.swiglu'])
    d = lin('down_proj', f'l{i}.swiglu', f'l{i}.down')
    last = i + 1 == s.num_hidden_layers
    follow = g.weight(f'l{i}.next_norm', w['norm.weight' if last else f'layers.{i + 1}.input_layernorm.weight'])
    g.node('SkipSimplifiedLayerNormalization', [f'l{i}.r', d, follow], [f'l{i}.n', '', '', f'l{i}.x'], MS, epsilon=s.rms_norm_eps)
    return f'l{i}.x', f'l{i}.n'


def begin(g: Graph, model: Guide):
    """The logits as an output, lengths, and the tables of positions."""
    g.outputs = [h.make_tensor_value_info('logits', T.FLOAT, ['batch_size', 'num_logits_to_keep', model.s.vocab_size])]
    head(g, model.s)
    g.const('cos_cache', model.cos.numpy())
    g.const('sin_cache', model.sin.numpy())


def decode(g: Graph, model: Guide, x: str, table: str):
    """From the embeddings x to the logits. `table` is the embedding matrix, which the head shares. `begin` comes first."""
    s, w = model.s, model.state_dict()
    n = g.node('SimplifiedLayerNormalization', [x, g.weight('first_norm', w['layers.0.input_layernorm.weight'])], ['l.n'],
               axis=-1, epsilon=s.rms_norm_eps)
    for i in range(s.num_hidden_layers):
        x, n = block(g, s, i, w, x, n)
    # The last N positions; N = 0 starts at -0 = 0 and keeps all.
    g.node('Neg', ['num_logits_to_keep'], ['keep_from'])
    g.node('Reshape', ['keep_from', 'one'], ['keep_from_1d'])
    g.node('Slice', [n, 'keep_from_1d', g.const('to_end', np.array([np.iinfo(np.int64).max], np.int64)), 'axis_1'], ['kept'])
    g.node('Transpose', [table], ['lm_head'], perm=[1, 0])
    g.node('MatMul', ['kept', 'lm_head'], ['logits'])
    g.inputs.append(integers('num_logits_to_keep', []))


def integers(name: str, dims: list):
    return h.make_tensor_value_info(name, T.INT64, dims)


def finish(g: Graph, name: str) -> onnx.ModelProto:
    graph = h.make_graph(g.nodes, name, g.inputs, g.outputs, g.inits)
    return h.make_model(graph, producer_name='inorigin', ir_version=8,
                        opset_imports=[h.make_opsetid('', 17), h.make_opsetid(MS, 1)])


def build(model: Guide) -> onnx.ModelProto:
    g = Graph()
    g.inputs = [integers('input_ids', ['batch_size', 'sequence_length']),
                integers('attention_mask', ['batch_size', 'total_sequence_length'])]
    begin(g, model)
    table = g.weight('embed_tokens', model.embed_tokens.weight)
    decode(g, model, g.node('Gather', [table, 'input_ids'], ['embedded']), table)
    return finish(g, 'guide')


def configs(s: Shape):
    at = lambda token: s.vocab_size - len(ADDED) + ADDED.index(token)
    end, turn = at('<|endoftext|>'), at('<|im_end|>')
    config = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', **asdict(s),
              'hidden_act': 'silu', 'attention_bias': False, 'attention_dropout': 0.0, 'mlp_bias': False,
              'rope_scaling': None, 'tie_word_embeddings': True, 'use_cache': True, 'initializer_range': 0.02,
              'pretraining_tp': 1, 'torch_dtype': 'float16', 'bos_token_id': end, 'eos_token_id': turn, 'pad_token_id': end}
    generation = {'bos_token_id': end, 'pad_token_id': end, 'eos_token_id': [turn, end],
                  'do_sample': False, 'max_new_tokens': 256}
    return config, generation


def export(model: Guide, out=MODEL_DIR):
    os.makedirs(out / 'onnx', exist_ok=True)
    proto = build(model)
    onnx.save(proto, str(out / 'onnx' / 'model.onnx'))
    for name, value in zip(('config.json', 'generation_config.json'), configs(model.s)):
        (out / name).write_text(json.dumps(value, indent=2) + '\n')
    return os.path.getsize(out / 'onnx' / 'model.onnx')


def load(path) -> Guide:
    state = torch.load(path, map_location='cpu', weights_only=True)
    model = Guide(Shape(**state['shape']))
    model.load_state_dict(state['model'])
    return model.eval()


if __name__ == '__main__':
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument('--checkpoint', default=str(WORK_DIR / 'checkpoint.pt'))
    print(f'model.onnx: {export(load(args.parse_args().checkpoint)):,} bytes')
