#!/usr/bin/env python3
"""Records what KerasHub's CausalLM tasks generate greedily, as tests/model/recorded/hub_generate.inc.

    python hub_generate.py OUT.inc        needs keras-hub and tensorflow

Weights are numbers that test_hub_generate.c makes too, so that no file is needed: `weight` below. Each row:
the model as JSON, prompts with their lengths, and the tokens of the greedy sampler.
"""
import json, os, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
import numpy as np, keras, keras_hub

H = keras_hub.models
V, T, FILLED = 40, 12, (3, 6, 5)
PLAIN = dict(vocabulary_size=V, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=24)
GROUPS = dict(vocabulary_size=V, num_layers=2, num_query_heads=4, num_key_value_heads=2, hidden_dim=16,
              intermediate_dim=24)
MODELS = {
    "gpt2": (H.GPT2Backbone, H.GPT2CausalLM, dict(PLAIN, dropout=0.1, max_sequence_length=T)),
    "opt": (H.OPTBackbone, H.OPTCausalLM, dict(PLAIN, dropout=0.0, max_sequence_length=T)),
    "llama": (H.LlamaBackbone, H.LlamaCausalLM, GROUPS),
    "llama3": (H.Llama3Backbone, H.Llama3CausalLM,
               dict(GROUPS, rope_frequency_adjustment_factor=4.0, rope_low_freq_factor=1.0,
                    rope_high_freq_factor=2.0, rope_pretraining_sequence_length=16)),
    "mistral": (H.MistralBackbone, H.MistralCausalLM, dict(GROUPS, sliding_window=3)),
    "qwen": (H.QwenBackbone, H.QwenCausalLM, GROUPS),
    "gemma": (H.GemmaBackbone, H.GemmaCausalLM,
              dict(GROUPS, head_dim=8, attention_logit_soft_cap=5.0, final_logit_soft_cap=8.0,
                   use_sliding_window_attention=True, sliding_window_size=4, use_post_ffw_norm=True,
                   use_post_attention_norm=True)),
    "phi3": (H.Phi3Backbone, H.Phi3CausalLM, GROUPS),
    "bloom": (H.BloomBackbone, H.BloomCausalLM, dict(PLAIN, num_heads=4)),
    "falcon": (H.FalconBackbone, H.FalconCausalLM,
               dict(vocabulary_size=V, num_layers=2, num_attention_heads=4, hidden_dim=16,
                    intermediate_dim=24)),
}  # GPT-NeoX rotates a token that it generates as the first one: its tokens are not those of the whole model


def weight(number, shape, offset):
    """Element i of weight `number`: a hash of both in [-0.4, 0.4), and 1 more in a norm's scale."""
    i = np.arange(int(np.prod(shape)), dtype=np.uint32)
    x = (i + np.uint32(number * 7919)) * np.uint32(2654435761)
    x ^= x >> np.uint32(15)
    x *= np.uint32(2246822519)
    x ^= x >> np.uint32(13)
    values = (x >> np.uint32(8)).astype(np.float32) / np.float32(1 << 24) - np.float32(0.5)
    return (values * np.float32(0.8) + np.float32(offset)).reshape(shape)


def c_text(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    lines = [escaped[i:i + 90] for i in range(0, len(escaped), 90)]
    for i, line in enumerate(lines[:-1]):
        if line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2:
            lines[i], lines[i + 1] = line[:-1], "\\" + lines[i + 1]
    return "\n     ".join(f'"{line}"' for line in lines)


def main():
    rows = []
    prompts = np.zeros((len(FILLED), T), np.int32)
    for r, count in enumerate(FILLED):
        prompts[r, :count] = [(7 * r + 5 * k * k + 3) % (V - 1) + 1 for k in range(count)]
    mask = (np.arange(T) < np.array(FILLED)[:, None]).astype(np.int32)
    for name, (backbone, task, config) in MODELS.items():
        keras.backend.clear_session()
        model = task(backbone=backbone(**config), preprocessor=None)
        scales = [len(v.shape) == 1 and v.path.split("/")[-1] in ("gamma", "scale") for v in model.weights]
        model.set_weights([weight(k, v.shape, scales[k]) for k, v in enumerate(model.weights)])
        model.compile(sampler="greedy")
        found = model.generate({"token_ids": prompts, "padding_mask": mask}, stop_token_ids=None)
        tokens = np.asarray(found["token_ids"])
        logits = np.asarray(model({"token_ids": tokens, "padding_mask": np.ones_like(mask)}))
        best = np.sort(logits, -1)[..., -2:]
        places = [(r, t) for r, count in enumerate(FILLED) for t in range(count, T)]
        margin = min(best[r, t - 1, 1] - best[r, t - 1, 0] for r, t in places)
        whole = all(logits[r, t - 1].argmax() == tokens[r, t] for r, t in places)
        print(name, tokens.tolist(), "margin", margin, "as the whole model" if whole else "OTHERWISE")
        saved = json.loads(model.to_json())
        saved = {key: saved[key] for key in ("module", "class_name", "config", "registered_name")}
        text = json.dumps(saved, separators=(",", ":"))
        numbers = ", ".join(str(t) for t in tokens.ravel())
        rows.append(f'    {{"{name}",\n     {c_text(text)},\n     {{{numbers}}}}},')
    body = "\n".join(rows)
    body = "\n".join(part if len(part) <= 108 else part[:part.rfind(" ", 0, 106)] + "\n      " +
                     part[part.rfind(" ", 0, 106) + 1:] for part in body.split("\n"))
    with open(sys.argv[1], "w") as out:
        out.write(f"/* Written by tests/oracle/hub_generate.py; keras-hub {keras_hub.__version__}, Keras "
                  f"{keras.__version__}. */\n"
                  f"enum {{ VOCABULARY = {V}, LENGTH = {T}, PROMPTS = {len(FILLED)} }};\n"
                  f"static const int64_t lengths[PROMPTS] = {{{', '.join(map(str, FILLED))}}};\n"
                  "static const struct {\n  const char *family, *json;\n  int32_t tokens[PROMPTS * LENGTH];\n"
                  f"}} recorded[] = {{\n{body}\n}};\n")


main()
