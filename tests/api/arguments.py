#!/usr/bin/env python3
"""Holds the list of what the macros of C take without names: tests/api/arguments.txt.

Reads the preprocessed headers (cc -E -P) with every macro of `NAME(...)` called behind them from standard
input. With --macros HEADER... prints that input. Otherwise the list is written anew and compared: a new
constructor without a decision, or a changed order of members, differs. --write writes it. What a macro takes
must be members in the struct's order, and of a class of Keras its arguments in Keras's order.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import misuse

HERE = os.path.dirname(os.path.abspath(__file__))
LIST = os.path.join(HERE, "arguments.txt")
KERAS = os.path.join(HERE, "..", "oracle", "keras_arguments.txt")
# All members mean by position what they mean by name, in the order of Keras's call.
WHOLE = {"mix_loss_call", "mix_metric_update"}
# No options struct: lists of values.
LISTS = {"mix_list_of", "mix_dict_of", "mix_dataset_zip", "mix_dataset_from_tensors",
         "mix_dataset_from_tensor", "mix_data_pipeline"}
# Members that are an argument of Keras under another name.
SAME = {"kernel": "kernel_size", "pool": "pool_size", "output": "output_size", "number": "factor",
        "height_number": "height_factor", "width_number": "width_factor", "factor": "size",
        "inner": "inner_optimizer"}
CELLS = {"ZeroPadding": "padding", "Cropping": "cropping"}
# What makes a struct: its members are named behind a semicolon, as a single number means nothing there.
MAKERS = {"mix_shape": "MIX_SHAPE", "mix_axes": "MIX_AXES", "mix_borders": "MIX_BORDERS",
          "mix_factor": "MIX_FACTOR", "mix_numbers": "MIX_NUMBERS"}
# What has another form in Keras: `mix_prelu("zeros")` is PReLU(alpha_initializer), and so on.
CLASSES = {"mix_prelu": "PReLU", "mix_lstm": "LSTM", "mix_gru": "GRU", "mix_rnn": "RNN", "mix_sgd": "SGD",
           "mix_lstm_cell": "LSTMCell", "mix_gru_cell": "GRUCell", "mix_rmsprop": "RMSprop",
           "mix_adamw": "AdamW", "mix_schedule_free_adamw": "ScheduleFreeAdamW",
           "mix_simple_rnn": "SimpleRNN", "mix_simple_rnn_cell": "SimpleRNNCell",
           "mix_stacked_rnn_cells": "StackedRNNCells", "mix_csv_logger": "CSVLogger",
           "mix_tensorboard": "TensorBoard", "mix_reduce_lr_on_plateau": "ReduceLROnPlateau",
           "mix_rms_normalization": "RMSNormalization", "mix_relu_layer": "ReLU",
           "mix_leaky_relu_layer": "LeakyReLU", "mix_elu_layer": "ELU",
           "mix_grouped_query_attention": "GroupQueryAttention"}


def keras_name(macro):
    if macro in CLASSES:
        return CLASSES[macro]
    name = re.sub("_layer$", "", macro[len("mix_"):])
    name = re.sub(r"(conv)_(lstm)", r"\1_LSTM", name)
    name = "".join(part if part.isupper() else part[0].upper() + part[1:] for part in name.split("_"))
    return re.sub(r"([123])d", r"\1D", name)


def struct_members(fields):
    made = {}
    for kind, name in fields:
        if kind in MAKERS:
            made.setdefault(MAKERS[kind], []).append(name)
    return ", ".join(f"{maker}({', '.join(names)})" for maker, names in made.items())


def print_macros(headers):
    print("#include <mixtape/mixtape.h>")
    for header in headers:
        with open(header) as file:
            text = file.read().replace("\\\n", " ")
        for name, parameters in re.findall(r"^#define (mix_\w+)\(([^)]*)\)", text, re.M):
            if "..." in parameters:
                print(f"MACRO {name} ({', '.join([*(['P'] * parameters.count(',')), 'ARGUMENTS'])})".replace(
                    f"{name} (", f"@{name} {name}("))


def rows(text):
    with open(KERAS) as file:
        keras = {}  # a loss comes before the metric of its name
        for line in file:
            if not line.startswith("#"):
                _, name, taken = line.split()
                keras.setdefault(name, taken.split(","))
    declarations, *calls = re.split(r"\bMACRO @", text)
    structs = misuse.struct_fields(declarations)
    for call in sorted(calls):
        macro, expansion = call.split(None, 1)
        expansion = " ".join(expansion.split())
        if macro in LISTS:
            continue
        literal = re.search(r"\(const (mix_\w+)\) ?\{(.*?)ARGUMENTS", expansion)
        fields = structs[literal.group(1)]
        before = re.findall(r"\.(\w+) = ?", literal.group(2))
        begin = [name for _, name in fields].index(before[-1]) + (not literal.group(2).rstrip().endswith("="))
        check = re.search(r'mix_arguments\w*\(((?:"\w*" ?)+), "([^"]*)"', re.sub(r'" +"', "", expansion))
        reached = [f"{kind} {name}" for kind, name in fields[begin:begin + 3]]
        if macro in WHOLE:
            taken = "all"
        elif not check:
            sys.exit(f"{macro}: takes arguments that nobody checks; use MIX_ARGUMENTS")
        else:
            if check.group(1).replace('"', "").replace(" ", "") != macro:
                sys.exit(f"{macro}: calls itself {check.group(1)} in messages")
            taken, _, made = check.group(2).partition("; ")
            if made != struct_members(fields):
                sys.exit(f'{macro}: behind the names belongs "; {struct_members(fields)}"')
            names = [name.strip().lstrip("!") for name in taken.split(",") if name.strip()]
            if names != [name for _, name in fields[begin:begin + len(names)]]:
                sys.exit(f"{macro}: takes {names}; the members are {reached}")
            theirs = keras.get(keras_name(macro))
            for at, name in enumerate(names if theirs else []):
                kind = keras_name(macro)
                same = {name, SAME.get(name), CELLS.get(kind[:-2]) if name == "cells" else None}
                if at >= len(theirs) or theirs[at] not in same:
                    sys.exit(f"{macro}: argument {at + 1} is {name}; Keras's {kind} takes {theirs}")
        theirs = keras.get(keras_name(macro))
        yield (f"{macro}: {taken or 'none'} | members: {', '.join(reached) or 'none'} | "
               f"Keras: {', '.join(theirs[:3]) if theirs else 'no such class'}")


def main():
    if sys.argv[1:2] == ["--macros"]:
        print_macros(sys.argv[2:])
        return
    found = list(rows(sys.stdin.read()))
    if sys.argv[1:] == ["--write"]:
        with open(LIST, "w") as file:
            file.write("\n".join(found) + "\n")
        return
    with open(LIST) as file:
        known = file.read().splitlines()
    changed = sorted(set(found) ^ set(known))
    if changed:
        sys.exit("not as in arguments.txt; decide, then run arguments.py --write:\n" + "\n".join(changed))
    print(f"{len(found)} macros")


if __name__ == "__main__":
    main()
