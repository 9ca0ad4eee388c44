#!/usr/bin/env python3
"""Weight maps of the library against KerasHub's own reading of folders that transformers wrote.

    python hugging_face.py MIXTAPE        MIXTAPE: the program; needs keras-hub, tensorflow, safetensors

Folders of small random models with the names of tensors that transformers saves are read by KerasHub, and by
`mixtape convert F.safetensors W.weights.h5 --model M.keras --weight-map NAME`; all weights must have equal
bits.
"""
import json, os, subprocess, sys, tempfile
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
import numpy as np, keras, keras_hub
from safetensors.numpy import save_file

H = keras_hub.models
V, E, F, L, HEADS, T = 30, 16, 64, 2, 4, 12
rng = np.random.default_rng(4)


def random(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def gpt2():
    tensors = {"wte.weight": random(V, E), "wpe.weight": random(T, E), "ln_f.weight": random(E),
               "ln_f.bias": random(E)}
    for i in range(L):
        for name, shape in (("ln_1", (E,)), ("ln_2", (E,)), ("attn.c_attn", (E, 3 * E)),
                            ("attn.c_proj", (E, E)), ("mlp.c_fc", (E, F)), ("mlp.c_proj", (F, E))):
            tensors[f"h.{i}.{name}.weight"] = random(*shape)
            tensors[f"h.{i}.{name}.bias"] = random(shape[-1])
        tensors[f"h.{i}.attn.bias"] = np.tril(np.ones((1, 1, T, T), np.float32))
    return H.GPT2Backbone, tensors, dict(model_type="gpt2", vocab_size=V, n_layer=L, n_head=HEADS, n_embd=E,
                                         resid_pdrop=0.1, n_positions=T)


def llama():
    groups = 2
    tensors = {"model.embed_tokens.weight": random(V, E), "model.norm.weight": random(E),
               "lm_head.weight": random(V, E)}
    for i in range(L):
        p = f"model.layers.{i}."
        for name, shape in (("self_attn.q_proj", (E, E)), ("self_attn.k_proj", (E // HEADS * groups, E)),
                            ("self_attn.v_proj", (E // HEADS * groups, E)), ("self_attn.o_proj", (E, E)),
                            ("mlp.gate_proj", (F, E)), ("mlp.up_proj", (F, E)), ("mlp.down_proj", (E, F)),
                            ("input_layernorm", (E,)), ("post_attention_layernorm", (E,))):
            tensors[f"{p}{name}.weight"] = random(*shape)
        tensors[f"{p}self_attn.rotary_emb.inv_freq"] = random(2)
    return H.Llama3Backbone, tensors, dict(
        model_type="llama", vocab_size=V, num_hidden_layers=L, num_attention_heads=HEADS, hidden_size=E,
        intermediate_size=F, num_key_value_heads=groups, tie_word_embeddings=False, rope_theta=10000.0,
        rms_norm_eps=1e-5, rope_scaling=None)


def bert(names=("weight", "bias")):
    p = "bert."
    tensors = {}
    for name, rows in (("word", V), ("position", T), ("token_type", 2)):
        tensors[f"{p}embeddings.{name}_embeddings.weight"] = random(rows, E)

    def norm(name):
        tensors[f"{p}{name}.{names[0]}"], tensors[f"{p}{name}.{names[1]}"] = random(E), random(E)

    def dense(name, inputs, outputs):
        tensors[f"{p}{name}.weight"], tensors[f"{p}{name}.bias"] = random(outputs, inputs), random(outputs)
    norm("embeddings.LayerNorm")
    dense("pooler.dense", E, E)
    for i in range(L):
        layer = f"encoder.layer.{i}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            dense(f"{layer}attention.{name}", E, E)
        norm(f"{layer}attention.output.LayerNorm")
        norm(f"{layer}output.LayerNorm")
        dense(f"{layer}intermediate.dense", E, F)
        dense(f"{layer}output.dense", F, E)
    tensors["cls.predictions.bias"] = random(V)
    return H.BertBackbone, tensors, dict(
        model_type="bert", vocab_size=V, num_hidden_layers=L, num_attention_heads=HEADS, hidden_size=E,
        intermediate_size=F, hidden_dropout_prob=0.1, max_position_embeddings=T, type_vocab_size=2)


failed = 0
for label, name, made in (("gpt2", "gpt2", gpt2()), ("llama", "llama", llama()), ("bert", "bert", bert()),
                          ("bert, old names", "bert", bert(("gamma", "beta")))):
    cls, tensors, config = made
    with tempfile.TemporaryDirectory() as folder:
        at = lambda file: os.path.join(folder, file)
        save_file(tensors, at("model.safetensors"), metadata={"format": "pt"})
        json.dump(config, open(at("config.json"), "w"))
        theirs = cls.from_preset(folder)
        ours = cls.from_config(theirs.get_config())
        ours.save(at("fresh.keras"))
        run = subprocess.run([sys.argv[1], "convert", at("model.safetensors"), at("w.weights.h5"), "--model",
                              at("fresh.keras"), "--weight-map", name], capture_output=True, text=True)
        if run.returncode == 0:
            ours.load_weights(at("w.weights.h5"))
        pairs = zip(ours.get_weights(), theirs.get_weights())
        equal = run.returncode == 0 and all(np.array_equal(a, b) for a, b in pairs)
        failed += not equal
        print(label, len(theirs.weights), "weights", "equal" if equal else "OTHERWISE: " + run.stderr.strip())
sys.exit(failed > 0)
