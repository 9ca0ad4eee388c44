#!/usr/bin/env python3
"""Records models of KerasHub with options and sizes that the reference files have not: hub_options.py OUT

Needs Keras 3.15 on TensorFlow (CPU) and keras-hub 0.32. Writes NAME.keras, NAME.npz and NAME.json as
shared/reference/hub has them, for each row of CASES and each policy: hub_bounds.py runs the program on them,
hub.py gives what the program writes back to KerasHub. --only TEXT: names with it
alone."""
import argparse
import json
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
import keras
import keras_hub
import numpy
import tensorflow

tensorflow.config.run_functions_eagerly(True)  # tracing would take longer than all steps
POLICIES = ["float32", "mixed_float16", "mixed_bfloat16"]
ENCODER = dict(vocabulary_size=37, num_layers=1, num_heads=3, hidden_dim=21, intermediate_dim=13, dropout=0.0,
               max_sequence_length=11)
ELECTRA = dict({k: v for k, v in ENCODER.items() if k != "vocabulary_size"}, vocab_size=37)
GROUPS = dict(vocabulary_size=41, num_layers=2, num_query_heads=6, num_key_value_heads=3, hidden_dim=24,
              intermediate_dim=20)
T5 = dict(vocabulary_size=33, num_layers=2, num_heads=3, hidden_dim=18, intermediate_dim=29, dropout=0.0)
VIT = dict(image_shape=(12, 20, 3), patch_size=(4, 5), num_layers=2, num_heads=3, hidden_dim=18, mlp_dim=22)
STRETCH = dict(rope_frequency_adjustment_factor=8.0, rope_low_freq_factor=1.0, rope_high_freq_factor=4.0,
               rope_pretraining_sequence_length=16)

# name: (backbone, its options, task, its options[, positions]); without a task a mode of quantization may
# stand for its options
CASES = {
    "bert-segments": ("Bert", dict(ENCODER, num_segments=5), "TextClassifier", dict(num_classes=2)),
    "bert-softmax": ("Bert", dict(ENCODER, num_layers=3, num_heads=7), "TextClassifier",
                     dict(num_classes=4, activation="softmax"), 11),
    "bert-dropout": ("Bert", dict(ENCODER, dropout=0.3), "TextClassifier",
                     dict(num_classes=2, dropout=0.4, activation="tanh")),
    "bert-one-position": ("Bert", ENCODER, "TextClassifier", dict(num_classes=2), 1),
    "bert-odd-heads": ("Bert", dict(ENCODER, num_heads=4), "TextClassifier", dict(num_classes=2)),
    "bert-function": ("Bert", dict(ENCODER, trainable=False, name="reader"), "TextClassifier",
                      dict(num_classes=4, activation=keras.activations.tanh)),
    "bert-pure": ("Bert", dict(ENCODER, dtype="bfloat16"), "TextClassifier", dict(num_classes=4)),
    "albert-groups": ("Albert", dict(ENCODER, num_layers=4, embedding_dim=7, num_groups=2,
                                     num_inner_repetitions=3, num_segments=3), "TextClassifier",
                      dict(num_classes=5)),
    "albert-alike": ("Albert", dict(ENCODER, num_layers=2, embedding_dim=21, num_groups=2), "TextClassifier",
                     dict(num_classes=2, dropout=0.2)),
    "electra-wide": ("Electra", dict(ELECTRA, embedding_dim=33, num_segments=4)),
    "electra-narrow": ("Electra", dict(ELECTRA, embedding_dim=5, dropout=0.2)),
    "electra-alike": ("Electra", dict(ELECTRA, embedding_dim=21)),
    "roberta-hidden": ("Roberta", ENCODER, "TextClassifier",
                       dict(num_classes=3, hidden_dim=9, activation="softmax")),
    "roberta-dropout": ("Roberta", dict(ENCODER, dropout=0.1), "TextClassifier",
                        dict(num_classes=3, dropout=0.2)),
    "xlm-roberta-one": ("XLMRoberta", dict(ENCODER, num_layers=3), "TextClassifier", dict(num_classes=1)),
    "xlm-roberta-hidden": ("XLMRoberta", ENCODER, "TextClassifier", dict(num_classes=3, hidden_dim=40)),
    "distil-bert-hidden": ("DistilBert", dict(ENCODER, num_layers=3), "TextClassifier",
                           dict(num_classes=3, hidden_dim=5, dropout=0.0)),
    "deberta-v3-short": ("DebertaV3", dict(ENCODER, num_layers=2, bucket_size=2), "TextClassifier",
                         dict(num_classes=3, hidden_dim=30)),
    "deberta-v3-wide": ("DebertaV3", dict(ENCODER, bucket_size=16), "TextClassifier", dict(num_classes=2)),
    "deberta-v3-default": ("DebertaV3", ENCODER, "TextClassifier", dict(num_classes=2, activation="sigmoid")),
    "deberta-v3-long": ("DebertaV3", dict(ENCODER, bucket_size=3, max_sequence_length=64), "TextClassifier",
                        dict(num_classes=2), 50),
    "bart-wide": ("Bart", dict(ENCODER, num_layers=3, num_heads=7, intermediate_dim=50)),
    "bart-one-head": ("Bart", dict(ENCODER, num_heads=1, dropout=0.5)),
    "bart-full-length": ("Bart", dict(ENCODER, num_heads=3, num_layers=2), None, None, 11),
    "t5-plain": ("T5", dict(T5, use_gated_activation=False)),
    "t5-gelu": ("T5", dict(T5, activation="gelu")),
    "t5-flan": ("T5", dict(T5, activation=keras_hub.src.utils.keras_utils.gelu_approximate,
                           key_value_dim=5, tie_embedding_weights=False)),
    "t5-silu": ("T5", dict(T5, activation="silu", num_layers=1, layer_norm_epsilon=1e-3)),
    "t5-keys": ("T5", dict(T5, key_value_dim=64, num_heads=2, activation="tanh", use_gated_activation=False)),
    "t5-long": ("T5", dict(T5, num_heads=1, dropout=0.1), None, None, 150),
    "t5-indivisible": ("T5", dict(T5, num_heads=4)),
    "vit-patches": ("ViT", VIT, "ImageClassifier", dict(num_classes=4)),
    "vit-gap": ("ViT", dict(VIT, use_class_token=False, num_layers=1), "ImageClassifier",
                dict(num_classes=2, pooling="gap", activation="softmax")),
    "vit-gap-token": ("ViT", dict(VIT, num_heads=2), "ImageClassifier", dict(num_classes=2, pooling="gap")),
    "vit-no-bias": ("ViT", dict(VIT, use_mha_bias=False, use_mlp_bias=False, use_patch_bias=False,
                                layer_norm_epsilon=1e-2), "ImageClassifier",
                    dict(num_classes=7, intermediate_dim=6)),
    "vit-mha-bias": ("ViT", dict(VIT, use_mlp_bias=False, dropout_rate=0.2, attention_dropout=0.3),
                     "ImageClassifier", dict(num_classes=2, dropout=0.5)),
    "vit-gray": ("ViT", dict(VIT, image_shape=(6, 6, 1), patch_size=6), "ImageClassifier",
                 dict(num_classes=3, intermediate_dim=11, pooling="gap")),
    "vit-nothing-pooled": ("ViT", dict(VIT, image_shape=(8, 8, 4), patch_size=2, num_heads=5),
                           "ImageClassifier", dict(num_classes=3, pooling=None)),
    "gpt2-wide": ("GPT2", dict(ENCODER, num_layers=3, num_heads=7, intermediate_dim=40), "CausalLM", {}, 11),
    "gpt2-dropout": ("GPT2", dict(ENCODER, dropout=0.2), "CausalLM", {}),
    "opt-wide": ("OPT", dict(ENCODER, num_layers=3, num_heads=7, intermediate_dim=40), "CausalLM", {}, 11),
    "opt-dropout": ("OPT", dict(ENCODER, dropout=0.2), "CausalLM", {}),
    "gpt-neo-x-whole": ("GPTNeoX", dict(ENCODER, num_layers=2, hidden_dim=24, rotary_percentage=1.0,
                                        rotary_max_wavelength=500, layer_norm_epsilon=1e-3), "CausalLM", {}),
    "gpt-neo-x-quarter": ("GPTNeoX", dict(ENCODER, num_heads=2, hidden_dim=32, dropout=0.1), "CausalLM", {}),
    "gpt-neo-x-third": ("GPTNeoX", dict(ENCODER, num_heads=2, hidden_dim=36, rotary_percentage=0.34),
                        "CausalLM", {}),
    "bloom-heads": ("Bloom", dict({k: v for k, v in ENCODER.items() if k != "max_sequence_length"},
                                  num_layers=2, layer_norm_epsilon=1e-2), "CausalLM", {}),
    "bloom-seven": ("Bloom", dict(vocabulary_size=37, num_layers=1, num_heads=7, hidden_dim=28,
                                  intermediate_dim=13, dropout=0.2), "CausalLM", {}),
    # its tie_word_embeddings is in no config: KerasHub 0.32 does not load such a file either
    "llama-wavelength": ("Llama", dict(GROUPS, rope_max_wavelength=300), "CausalLM", {}),
    "llama-one-group": ("Llama", dict(GROUPS, num_key_value_heads=1, layer_norm_epsilon=1e-2), "CausalLM",
                        {}),
    "llama-all-heads": ("Llama", dict(GROUPS, num_key_value_heads=6, dropout=0.1, **STRETCH), "CausalLM", {}),
    "llama-pure": ("Llama", dict(GROUPS, dtype="bfloat16"), "CausalLM", {}),
    "llama-frozen": ("Llama", dict(GROUPS, trainable=False), "CausalLM", {}),
    "llama-scaled": ("Llama", dict(GROUPS, rope_position_scaling_factor=4.0), "CausalLM", {}),
    "llama3-stretched": ("Llama3", dict(GROUPS, rope_max_wavelength=500000, **STRETCH), "CausalLM", {}, 40),
    "llama3-plain": ("Llama3", dict(GROUPS, num_layers=1), "CausalLM", {}),
    "mistral-narrow": ("Mistral", dict(GROUPS, sliding_window=2, rope_scaling_factor=2.0), "CausalLM", {},
                       17),
    "mistral-head": ("Mistral", dict(GROUPS, head_dim=10, layer_norm_epsilon=1e-2), "CausalLM", {}),
    "mistral-no-window": ("Mistral", dict(GROUPS, sliding_window=None, dropout=0.2), "CausalLM", {}),
    "mistral-one": ("Mistral", dict(GROUPS, sliding_window=1, num_key_value_heads=6), "CausalLM", {}),
    "qwen-untied": ("Qwen", dict(GROUPS, tie_word_embeddings=False, rope_scaling_factor=0.5), "CausalLM", {}),
    "qwen-window": ("Qwen", dict(GROUPS, use_sliding_window_attention=True, sliding_window_size=3),
                    "CausalLM", {}, 17),
    "qwen-dropout": ("Qwen", dict(GROUPS, dropout=0.2, sliding_window_size=3), "CausalLM", {}),
    "phi3-groups": ("Phi3", dict(GROUPS, num_key_value_heads=2, rope_max_wavelength=77,
                                 max_sequence_length=64, pretraining_sequence_length=32), "CausalLM", {}),
    "phi3-dropout": ("Phi3", dict(GROUPS, dropout=0.2, layer_norm_epsilon=1e-2), "CausalLM", {}),
    "phi3-su-long": ("Phi3", dict(GROUPS, max_sequence_length=64, pretraining_sequence_length=8,
                                  rope_scaling_type="su", rope_scaling_short_factor=[1.0, 1.5],
                                  rope_scaling_long_factor=[2.0, 3.0]), "CausalLM", {}, 20),
    "phi3-su-short": ("Phi3", dict(GROUPS, max_sequence_length=16, pretraining_sequence_length=16,
                                   rope_scaling_type="su", rope_scaling_short_factor=[1.0, 1.5],
                                   rope_scaling_long_factor=[2.0, 3.0]), "CausalLM", {}),
    "phi3-su": ("Phi3", dict(GROUPS, max_sequence_length=64, pretraining_sequence_length=8,
                             rope_scaling_type="su", rope_scaling_short_factor=[1.0, 1.5],
                             rope_scaling_long_factor=[2.0, 3.0]), "CausalLM", {}),
    "gemma-two": ("Gemma", dict(GROUPS, num_layers=3, head_dim=6, use_post_ffw_norm=True,
                                use_post_attention_norm=True, attention_logit_soft_cap=5.0,
                                final_logit_soft_cap=3.0, use_sliding_window_attention=True,
                                sliding_window_size=3), "CausalLM", {}, 13),
    "gemma-ffw-norm": ("Gemma", dict(GROUPS, head_dim=4, use_post_ffw_norm=True, layer_norm_epsilon=1e-2),
                       "CausalLM", {}),
    "gemma-attention-norm": ("Gemma", dict(GROUPS, head_dim=4, num_key_value_heads=1, dropout=0.1,
                                           use_post_attention_norm=True, query_head_dim_normalize=False),
                             "CausalLM", {}),
    "gemma-cap": ("Gemma", dict(GROUPS, head_dim=8, final_logit_soft_cap=2.0), "CausalLM", {}),
    "gemma-all-heads": ("Gemma", dict(GROUPS, head_dim=2, num_key_value_heads=6, intermediate_dim=22,
                                      attention_logit_soft_cap=1.0), "CausalLM", {}),
    "bert-int8": ("Bert", ENCODER, None, "int8"),
    "t5-int4": ("T5", T5, None, "int4"),
    "vit-int8": ("ViT", VIT, None, "int8"),
    "gpt2-int4": ("GPT2", ENCODER, None, "int4"),
    "llama-int8": ("Llama", GROUPS, None, "int8"),
    "gemma-int4": ("Gemma", dict(GROUPS, head_dim=4), None, "int4"),
    "falcon-heads": ("Falcon", dict(vocabulary_size=37, num_layers=1, num_attention_heads=3, hidden_dim=24,
                                    intermediate_dim=96, layer_norm_epsilon=1e-2), "CausalLM", {}),
    "falcon-narrow": ("Falcon", dict(vocabulary_size=37, num_layers=2, num_attention_heads=5, hidden_dim=20,
                                     intermediate_dim=31, attention_dropout_rate=0.2,
                                     feedforward_dropout_rate=0.3), "CausalLM", {}),
}


def inputs_of(model, rng, positions, examples, words):
    x = {}
    for tensor in model.inputs:
        name, shape = tensor.name.split(":")[0], (examples, *tensor.shape[1:])
        if "images" in name:
            x[name] = numpy.round(rng.standard_normal(shape) * 64).astype(numpy.float32) / 64
            continue
        shape = (examples, max(1, positions - 2 * ("decoder" in name)))
        if "mask" in name:
            x[name] = (numpy.arange(shape[1]) < [[max(1, shape[1] - 2 * e)] for e in range(examples)]) * 1
        else:
            x[name] = rng.integers(0, 2 if "segment" in name else words, shape)
        x[name] = x[name].astype(numpy.int32)
    return x


def has_dropout(model):
    return any(getattr(layer, "rate", 0) for layer in model._flatten_layers())


def record(out, number, name, policy, backbone, options, task=None, task_options=None, positions=9):
    keras.backend.clear_session()
    keras.utils.set_random_seed(4100 + number)
    rng = numpy.random.default_rng(4100 + number)
    keras.config.set_dtype_policy(policy)
    model = getattr(keras_hub.models, backbone + "Backbone")(**options)
    if task:
        quiet = {"dropout": 0.0} if task == "TextClassifier" and not options["dropout"] else {}
        model = getattr(keras_hub.models, backbone + task)(backbone=model, preprocessor=None,
                                                           **{**quiet, **task_options})
    for variable in model.trainable_variables:
        variable.assign(variable.numpy() + 0.1 * rng.standard_normal(variable.shape).astype(numpy.float32))
    mode = None if task else task_options
    if mode:
        model.quantize(mode)
    words = options.get("vocabulary_size", options.get("vocab_size"))
    x = inputs_of(model, rng, positions, 5, words)
    feed = x if len(x) > 1 else next(iter(x.values()))
    made = model.predict(feed, batch_size=5, verbose=0)
    outputs = sorted(made) if isinstance(made, dict) else []
    made = [made[key] for key in outputs] if outputs else [made]
    arrays = {f"x_{i}": array for i, array in enumerate(x.values())}
    arrays.update({f"predict_{i}": numpy.asarray(y, numpy.float32) for i, y in enumerate(made)})
    stem, losses, state = os.path.join(out, f"{name}-task-{policy}" if task else f"{name}-{policy}"), [], {}
    if task:
        y = arrays["y"] = rng.integers(0, made[0].shape[-1], made[0].shape[:-1]).astype(numpy.int64)
        from_logits = task_options.get("activation") != "softmax"
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=from_logits)
    else:  # rows of random numbers
        wanted = [rng.standard_normal(rows.shape).astype(numpy.float32) for rows in made]
        arrays.update({f"y_{i}": rows for i, rows in enumerate(wanted)})
        y = dict(zip(outputs, wanted)) if outputs else wanted[0]
        loss = {key: "mse" for key in outputs} if outputs else "mse"
    if not mode:
        model.compile(optimizer=keras.optimizers.AdamW(1e-3, weight_decay=0.01), loss=loss)
    model.save(stem + ".keras")
    losses = [] if mode else [float(numpy.ravel(model.train_on_batch(feed, y))[0]) for _ in range(4)]
    scale = None if mode else getattr(model.optimizer, "dynamic_scale", None)
    if scale is not None:
        state = {"loss_scale": float(scale), "iterations": int(model.optimizer.iterations)}
    numpy.savez_compressed(stem + ".npz", **arrays)
    json.dump({"name": os.path.basename(stem), "class": type(model).__name__, "policy": policy, "examples": 5,
               "inputs": list(x), "output_names": outputs, "losses": losses, "dropout": has_dropout(model),
               **state}, open(stem + ".json", "w"))
    print(os.path.basename(stem), losses, flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--only", default="")
    parser.add_argument("--policies", default=",".join(POLICIES))
    given = parser.parse_args()
    os.makedirs(given.out, exist_ok=True)
    for number, (name, case) in enumerate(CASES.items()):
        for policy in given.policies.split(",") if given.only in name else []:
            try:
                record(given.out, number, name, policy, *case)
            except Exception as error:  # an option that KerasHub itself refuses
                print(name, policy, "KerasHub:", type(error).__name__, str(error)[:200].replace("\n", " "),
                      flush=True)


main()
