#!/usr/bin/env python3
"""Writes the table of calls of test_misuse: every public function with malformed arguments.

Reads the preprocessed public headers (cc -E -P) from standard input and writes C to standard output: for each
function a call with plain arguments, and calls in which one argument, or one member of an options struct, is
malformed: NULL, an object of another kind, a list of wrong items, an impossible number, shape, dtype or text.
plain_arguments.h has the objects. With the argument `constructors` the table is of the functions that return
an object, each with plain arguments that are made before allocations fail.
"""
import re
import sys

# Not called: they end scopes, record the error that they are given, or take memory and functions whose
# validity no callee can check.
EXCLUDED = {
    "mix_shutdown", "mix_set_log_callback", "mix_policy_scope_end", "mix_remat_scope_end", "mix_autocast_end",
    "mix_error_record", "mix_set_allocator",
}
# Opaque handles that are objects with a class, as kinds of wrong objects for each other.
OBJECTS = {
    "mix_list", "mix_tensor", "mix_variable", "mix_tape", "mix_function", "mix_generator", "mix_policy",
    "mix_layer", "mix_initializer", "mix_regularizer", "mix_constraint", "mix_loss", "mix_metric",
    "mix_optimizer", "mix_loss_scale", "mix_dataset", "mix_iterator", "mix_model", "mix_history", "mix_npz",
    "mix_callback", "mix_checkpoint", "mix_logs", "mix_numerics", "mix_schedule", "mix_csv_columns",
    "mix_decode_state",
}
# Queries, where an object of another kind has no such thing, and calls that take any object.
ANY_OBJECT = {"mix_policy_equal", "mix_retain", "mix_release", "mix_scope_leave",
              "mix_optimizer_slot", "mix_list_append", "mix_list_new", "mix_list_get"}
# Calls that would do what they are told for hours.
ENDLESS = {("mix_model_fit_with", ".epochs"), ("mix_numerics_run_with", ".steps")}
# Members and parameters of type void * that are objects; the others are the caller's own memory.
OBJECT_NAMES = {
    "x", "y", "inputs", "target", "loss", "validation_x", "validation_y", "sample_weight", "mask", "outputs",
    "validation_sample_weight", "metrics", "weighted_metrics", "source", "y_true", "y_pred",
    "training_data", "item",
}
INTEGERS = {"int": ["0", "-1", "4000", "INT_MAX", "INT_MIN"],
            "int64_t": ["0", "-1", "4000", "INT64_MAX", "INT64_MIN"],
            "uint64_t": ["UINT64_MAX"], "size_t": ["0"]}
DOUBLES = ["-1", "NAN", "INFINITY", "1e300", "-0x1p-1022"]
TEXTS = ["NULL", '""', '"no such thing"', '"{"', '"[["', '"a=b,c=-1"', "long_text"]
SHAPES = ["SHAPE(4000, 1)", "SHAPE(-1, 1)", "SHAPE(2, -5)", "SHAPE(2, INT64_MAX)", "SHAPE(1, INT64_MIN)",
          "SHAPE(8, 4096)"]
AXES = ["AXES(4000, 0)", "AXES(-1, 0)", "AXES(2, 0)", "AXES(1, 99)", "AXES(1, INT_MIN)"]

BASE_FIELDS = {
    "units": "3", "x": "a_tensor()", "y": "a_tensor()", "inputs": "a_tensor()", "dataset": "a_dataset()",
    "batch_size": "2", "buffer_size": "2", "learning_rate": "0.1", "input_dim": "4", "output_dim": "2",
    "y_true": "a_tensor()", "y_pred": "a_tensor()", "variables": "a_list_of_variables()", "verbose": "0",
    "inner": "an_optimizer()", "n": "2", "directory": '"folder"', "path": '"file"', "epochs": "1",
}
FACTOR = "{true, false, 0, 0.2}"
# Plain arguments of single functions and structs, so that the plain call succeeds.
PLAIN = {
    "mix_initializer_options": {"initializer": '"zeros"'},
    "mix_variable_options": {"initial_value": "a_tensor()"},
    "mix_policy_options": {"name": '"mixed_float16"'}, "mix_regularizer_options": {"regularizer": '"l2"'},
    "mix_constraint_options": {"constraint": '"non_neg"'}, "mix_loss_options": {"loss": '"mse"'},
    "mix_metric_options": {"metric": '"mean"'}, "mix_metric_update_options": {"values": "a_tensor()"},
    "mix_subclassed_options": {"layer": "a_layer()"}, "mix_model_checkpoint_options": {"filepath": '"x.npz"'},
    "mix_csv_logger_options": {"filename": '"x.csv"'},
    "mix_model_save_weights": {"path": '"x.npz"'},
    "mix_backup_and_restore_options": {"backup_dir": '"y"'},
    "mix_remat": {"function": "body"},
    "mix_dataset_generator_options": {"generate": "generate"}, "mix_dataset_window_options": {"window": "2"},
    "mix_dataset_map_options": {"function": "body"}, "mix_dataset_filter_options": {"predicate": "keep"},
    "mix_dataset_interleave_options": {"function": "expand"}, "mix_function_options": {"body": "body"},
    "mix_checkpoint_options": {"folder": '"checkpoints"', "variables": "a_list_of_variables()"},
    "mix_graph_rewrite_options": {"optimizer": "an_optimizer()"},
    "mix_activation_options": {"activation": '"relu"'},
    "mix_adaptive_pooling_options": {"output_size": "SHAPE(1, 2)"},
    "mix_pool_window": {"size": "SHAPE(1, 2)"},
    "mix_max_pool": {"x": "mix_expand_dims(a_tensor(), 0)"},
    "mix_tensor_wrap_strided": {"strides": "SHAPE(1, 1)"},
    "mix_avg_pool": {"x": "mix_expand_dims(a_tensor(), 0)"},
    "mix_resizing_options": {"height": "2", "width": "2"},
    "mix_center_crop_options": {"height": "2", "width": "2"},
    "mix_random_crop_options": {"height": "2", "width": "2"},
    "mix_random_rotation_options": {"factor": FACTOR},
    "mix_random_translation_options": {"height_factor": FACTOR, "width_factor": FACTOR},
    "mix_random_zoom_options": {"height_factor": FACTOR}, "mix_random_contrast_options": {"factor": FACTOR},
    "mix_random_brightness_options": {"factor": FACTOR},
    "mix_spectral_normalization_options": {"layer": "a_layer()"},
    "mix_projective_transform": {"images": "mix_expand_dims(mix_expand_dims(a_tensor(), 0), 3)",
                                 "transforms": "mix_fill(MIX_SHAPE(1, 8), 0.5, MIX_FLOAT32)"},
    "mix_rescaling_options": {"scale": "2"}, "mix_category_encoding_options": {"num_tokens": "4"},
    "mix_discretization_options": {"num_bins": "4"},
    "mix_conv_options": {"kernel": "mix_expand_dims(a_tensor(), 0)"},
    **{call: {"x": "mix_expand_dims(a_tensor(), 0)"}
       for call in ("mix_conv_with", "mix_conv_transpose_with", "mix_depthwise_conv_with")},
    **{f"mix_{layer}_layer_options": {"filters": "2", "kernel_size": "SHAPE(1, 2)"}
       for layer in ("conv", "conv_transpose", "separable_conv")},
    "mix_depthwise_conv_layer_options": {"kernel_size": "SHAPE(1, 2)"},
    "mix_locally_connected_options": {"filters": "2", "kernel_size": "SHAPE(1, 2)"},
    "mix_custom_gradient": {"forward": "body", "backward": "backward"},
    "mix_layer_add_loss": {"loss": "a_scalar()"}, "mix_layer_add_metric": {"value": "a_scalar()"},
    "mix_broadcast": {"root": "0"},
    "mix_activate_with": {"name": '"relu"', "activation": '"relu"'}, "mix_matmul": {},
    "mix_clip": {"low": "a_scalar()", "high": "a_scalar()"}, "mix_bias_add": {"bias": "a_row()"},
    "mix_slice": {"begin": "SHAPE(2, 0)", "size": "SHAPE(2, 1)"},
    "mix_pad": {"before": "SHAPE(2, 1)", "after": "SHAPE(2, 1)"}, "mix_reshape": {"shape": "SHAPE(1, 9)"},
    "mix_squeeze": {"x": "mix_expand_dims(a_tensor(), 0)"}, "mix_transpose": {"permutation": "AXES(0, 0)"},
    "mix_broadcast_to": {"shape": "SHAPE(3, 3)"}, "mix_layer_build": {"input_shape": "SHAPE(2, 3)"},
    "mix_model_build": {"input_shape": "SHAPE(2, 3)"}, "mix_select": {"condition": "a_bool()"},
    "mix_logical_not": {"x": "a_bool()", "a": "a_bool()"},
    "mix_logical_and": {"a": "a_bool()", "b": "a_bool()"},
    "mix_logical_or": {"a": "a_bool()", "b": "a_bool()"}, "mix_reduce_all": {"x": "a_bool()"},
    "mix_reduce_any": {"x": "a_bool()"}, "mix_gather": {"indices": "an_index()"},
    "mix_one_hot": {"indices": "an_index()"}, "mix_sparse_softmax_cross_entropy": {"labels": "an_index()"},
    "mix_stateless_uniform": {"state": "a_state()"}, "mix_stateless_normal": {"state": "a_state()"},
    "mix_stateless_truncated_normal": {"state": "a_state()"},
    "mix_loss_scale_update": {"all_finite": "true_scalar()"},
    "mix_fixed_loss_scale": {"value": "2"}, "mix_tensor_read": {"count": "9"},
    "mix_tensor_item": {"tensor": "a_scalar()"},
    "mix_optimizer_build": {"variables": "a_list_of_variables()"},
    "mix_optimizer_exclude_from_weight_decay": {"variables": "a_list_of_variables()"},
    "mix_optimizer_apply_gradients": {"variables": "a_list_of_variables()"},
    "mix_optimizer_apply": {"variables": "a_list_of_variables()"},
    "mix_optimizer_finalize_variable_values": {"variables": "a_list_of_variables()"},
    "mix_optimizer_minimize_function": {"variables": "a_list_of_variables()", "loss": "loss_of"},
    "mix_optimizer_compute_gradients_of": {"variables": "a_list_of_variables()", "loss": "loss_of"},
    "mix_loss_scale_get": {"identifier": '"dynamic"'}, "mix_list_get": {"index": "0"},
    "mix_loss_scale_from_text": {"text": '"dynamic"'}, "mix_npz_name": {"index": "0"},
    "mix_csv_options": {"path": "a_table()"}, "mix_csv_columns_save": {"path": '"c.json"'},
    "mix_csv_columns_load": {"path": "a_columns_file()"},
    "mix_npz_require": {"name": '"a"'}, "mix_set_semantics": {"name": '"tf_keras"'},
    "mix_semantics_named": {"name": '"tf_keras"'}, "mix_set_global_policy": {"name": '"float32"'},
    "mix_set_floatx": {"name": '"float32"'}, "mix_set_device": {"name": '"cpu"'},
    "mix_metric_from_text": {"text": '"mean"'}, "mix_optimizer_from_name": {"name": '"sgd"'},
    "mix_optimizer_from_text": {"text": '"sgd"'}, "mix_callback_from_text": {"text": '"terminate_on_nan"'},
    "mix_dataset_shard": {"index": "0"}, "mix_dataset_zip_list": {"datasets": "a_list_of(a_dataset())"},
    "mix_schedule_function": {"function": "step_of"}, "mix_learning_rate_scheduler": {"schedule": "rate_of"},
    "mix_normalization_adapt": {"layer": "mix_normalization()"},
    "mix_normalization_reset": {"layer": "mix_normalization()"},
    "mix_normalization_update": {"layer": "mix_normalization()"},
    "mix_discretization_adapt": {"layer": "mix_discretization(.num_bins = 3)"},
    "mix_discretization_reset": {"layer": "mix_discretization(.num_bins = 3)"},
    "mix_discretization_update": {"layer": "mix_discretization(.num_bins = 3)"},
    "mix_layer_with": {}, "mix_permute_options": {"dims": "AXES(1, 1)"},
    "mix_dot_options": {"axis_count": "1"},
    "mix_layer_from_config": {"class_name": '"Flatten"', "json": '"{}"'},
    "mix_optimizer_from_config": {"class_name": '"SGD"', "json": '"{}"'},
    "mix_loss_scale_optimizer_options": {"inner": "an_optimizer()"},
    "mix_optimizer_get_scaled_loss": {"optimizer": "a_scaling_optimizer()"},
    "mix_optimizer_get_scaled_loss_of": {"optimizer": "a_scaling_optimizer()", "loss": "loss_of"},
    "mix_optimizer_get_unscaled_gradients": {"optimizer": "a_scaling_optimizer()"},
    "mix_quantize_options": {"mode": '"float8"'},
    "mix_save_weights_options": {"path": '"m.weights.h5"'},
    "mix_export_options": {"path": '"m.onnx"'},
    "mix_model_lora_options": {"rank": "2"}, "mix_layer_lora_options": {"rank": "2"},
    "mix_layer_enable_lora_with": {"layer": "a_built_layer()"},
    "mix_model_save_lora": {"model": "a_lora_model()", "path": '"a.npz"'},
    "mix_model_load_lora": {"path": "an_adapter()"},
    "mix_decode_state_with": {"model": "a_token_model()"}, "mix_decode": {"tokens": "a_token()"},
    "mix_decode_rewind": {"position": "0"}, "mix_decode_reorder": {"parents": "an_index()"},
    "mix_generate_options": {"prompt": "a_token()", "tokens": "2"},
    "mix_generate_with": {"model": "a_token_model()"},
    "mix_cast_saturating": {"dtype": "MIX_FLOAT8_E4M3FN"},
    "mix_quantize_dequantize": {"scale": "a_scalar()", "dtype": "MIX_FLOAT8_E4M3FN"},
    "mix_matmul_integer": dict.fromkeys("ab", "mix_cast(a_tensor(), MIX_INT8)"),
    **{f"mix_{call}": dict.fromkeys("ab", "mix_cast(a_tensor(), MIX_INT32)")
       for call in ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")},
    "mix_take_along_axis": {"indices": "mix_fill(MIX_SHAPE(3, 3), 1, MIX_INT64)"},
    "mix_pack_int4": {"values": "mix_cast(a_tensor(), MIX_INT8)"},
    "mix_unpack_int4": {"packed": "mix_cast(a_tensor(), MIX_INT8)", "size": "6"},
    **{call: {"stored": "mix_cast(a_tensor(), MIX_INT8)", "scale": "a_row()", "zero": "NULL"}
       for call in ("mix_dequantize_stored", "mix_matmul_stored")},
    "mix_policy_map_options": {"semantics": 'mix_semantics_named("keras3")'},
    "mix_policy_map_from_json": {"json": '"{\\"policy_map\\": {}}"'},
    "mix_policy_map_set": {"map": "a_map()", "key": '"new"'},
    "mix_policy_map_set_name": {"map": "a_map()", "key": '"new"', "policy": '"float32"'},
    "mix_policy_map_delete": {"map": "a_map()", "key": '"dense"'},
    "mix_policy_map_lookup": {"map": "a_map()"},
    "mix_policy_serialize": {}, "mix_policy_deserialize": {"json": '"\\"float32\\""'},
    "mix_checkpoint_latest": {"folder": '"."'}, "mix_model_get_layer": {"name": '"inner"'},
    "mix_model_inputs": {"model": "a_token_model()"}, "mix_model_outputs": {"model": "a_token_model()"},
    "mix_model_layer_outputs": {"model": "a_token_model()", "name": '"words"'},
    "mix_set_graph_rewrite": {"dtype": '"float16"'}, "mix_set_accumulate": {"name": '"auto"'},
    "mix_set_float32_precision": {"name": '"highest"'},
    "mix_set_deterministic": {"on": "true"},
    "mix_set_memory": {"name": '"auto"'}, "mix_set_memory_budget": {"bytes": "0"},
    **{f"mix_variables_{what}": {"variables": "a_list_of_variables()"}
       for what in ("zeros_like", "assign_zeros", "assign_add", "values")},
    **{f"mix_data_apply_{step}":
       {"options": f"&(mix_dataset_{step}_options){{.size = sizeof(mix_dataset_{step}_options), .{member}}}"}
       for step, member in (("shuffle", "buffer_size = 2"), ("batch", "batch_size = 2"),
                            ("padded_batch", "batch_size = 2"), ("window", "window = 2"),
                            ("map", "function = body"), ("filter", "predicate = keep"),
                            ("interleave", "function = expand"))},
    "mix_data_pipeline_of": {"steps": "(const mix_data_step[]){{mix_data_apply_unbatch, NULL}}"},
    "mix_retain": {"object": "a_tensor()"}, "mix_release": {"object": "mix_retain(a_tensor())"},
    "mix_scope_leave": {"object": "a_tensor()"},
    **{call: {"scope": "mix_scope_begin()"} for call in ("mix_scope_end", "mix_scope_end_at")},
    **{call: {"scope": "(mix_scope *[]){mix_scope_begin()}"}
       for call in ("mix_scope_end_block", "mix_scope_broken")},
    "mix_data_apply_shard": {"count_and_index": "(const int64_t[]){2, 0}"},
}
ARTICLE = {"optimizer": "an", "initializer": "an", "iterator": "an", "npz": "an"}


def fits(kind, value):
    """True if a member of this type can have the value."""
    if kind == "const char *" or value.startswith('"'):
        return kind == "const char *" and value.startswith('"')
    if object_kind(kind) == "mix_list":
        return "list" in value
    return kind.endswith("*") == value.endswith(")")


def maker(kind):
    name = kind[len("mix_"):]
    return f"{ARTICLE.get(name, 'a')}_{name}()"


def clean(text):
    return " ".join(text.split())


def split_parameters(text):
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [clean(part) for part in [*parts, text[start:]]]


def parameter(text):
    """(type, name) of a declaration; a function pointer has the type "function"."""
    pointer = re.search(r"\(\*(\w+)\)", text)
    if pointer:
        return "function", pointer.group(1)
    match = re.match(r"(.*?[\s*])(\w+)((?:\[[^\]]*\])*)$", text)
    if not match:
        return text, ""
    return match.group(1).strip() + ("[]" if match.group(3) else ""), match.group(2)


def struct_fields(text):
    """Struct name -> list of (type, field)."""
    found = {}
    for match in re.finditer(r"typedef struct (\w+) \{(.*?)\n\} \1;", text, re.S):
        fields = []
        for declaration in match.group(2).split(";"):
            declaration = clean(declaration)
            if not declaration:
                continue
            if "(" in declaration:
                fields.append(parameter(declaration))
                continue
            first, *others = declaration.split(",")
            kind, name = parameter(first.strip())
            fields.append((kind, name))
            for other in others:
                other = other.strip()
                fields.append((re.sub(r"\s*\*+$", "", kind) + (" *" if other.startswith("*") else "")
                               + ("[]" if "[" in other else ""), re.match(r"\**(\w+)", other).group(1)))
        found[match.group(1)] = fields
    return found


def functions(text):
    pattern = r'__attribute__\(\(visibility\("default"\)\)\)\s+([^;{}]*?);'
    for match in re.finditer(pattern, text, re.S):
        declaration = clean(re.sub(r"__attribute__\(\(__format__.*?\)\)\)", "", clean(match.group(1))))
        head = re.match(r"(.*?)(\w+)\s*\((.*)\)$", declaration)
        if not head or not head.group(2).startswith("mix_"):
            continue
        inside = head.group(3)
        parameters = [] if inside in ("void", "") else [parameter(p) for p in split_parameters(inside)]
        yield head.group(2), clean(head.group(1)), parameters


def object_kind(kind):
    match = re.match(r"(?:const )?(mix_\w+) \*$", kind)
    return match.group(1) if match and match.group(1) in OBJECTS else None


class Calls:
    def __init__(self, text):
        self.structs = struct_fields(text)
        self.rows, self.bodies = [], []

    def base(self, kind, name):
        if object_kind(kind):
            return maker(object_kind(kind)) if name != "list" or kind != "mix_list *" else "a_list()"
        if kind == "void *" and name in OBJECT_NAMES:
            return "a_tensor()"
        options = re.match(r"(?:const )?(mix_\w+) \*$", kind)
        if options and options.group(1) in self.structs:
            return "&" + self.struct_of(options.group(1), {})
        table = {
            "const char *": '"x"', "char *": "text_buffer", "size_t": "sizeof text_buffer", "double": "0.5",
            "int": "1", "int64_t": "1", "uint64_t": "1", "_Bool": "false", "bool": "false",
            "void *": "memory",
            "mix_dtype": "MIX_FLOAT32", "mix_shape": "SHAPE(1, 3)", "mix_axes": "AXES(1, 0)",
            "const void *": "memory", "const double *": "(const double *)memory",
            "double *": "(double *)memory",
            "mix_tensor *const *": "tensor_array()", "void *const *": "object_array()",
            "const char *const *": "name_array", "const int64_t *": "(const int64_t *)memory",
            "int *": "(int *)memory", "int64_t *": "(int64_t *)memory",
        }
        return table.get(kind, "NULL" if kind == "function" or kind.endswith("*") else f"({kind}){{0}}")

    def struct_of(self, name, values):
        plain = {**BASE_FIELDS, **PLAIN.get(name, {})}
        fields = {field: plain[field] for kind, field in self.structs[name]
                  if field in plain and (field in PLAIN.get(name, {}) or fits(kind, plain[field]))}
        if ("size_t", "size") in self.structs[name]:
            fields["size"] = f"sizeof({name})"
        fields |= values
        inside = ", ".join(f".{field} = {value}" for field, value in fields.items())
        return f"({name}){{{inside or '0'}}}"

    def malformed(self, kind, name, after_array):
        """(value, True if it is an object of the wrong kind) in place of a value of this type."""
        wanted = object_kind(kind)
        if wanted:
            yield f"NULL", False
            other = "a_policy()" if wanted == "mix_list" else "a_list()"
            yield f"ENDED({self.base(kind, name)}, {other})", True
            if wanted != "mix_list":
                yield "(void *)a_list()", True
            if wanted != "mix_policy":
                yield "(void *)a_policy()", True
            if wanted == "mix_list":
                yield "a_list_of(a_policy())", True
                yield "a_list_of(NULL)", False
                yield "a_list()", False
        elif kind == "void *" and name in OBJECT_NAMES:
            yield "NULL", False
            yield "(void *)a_policy()", True
            yield "a_list_of(a_policy())", True
            yield "a_list_of(NULL)", False
        elif kind in INTEGERS:
            negative = [value for value in INTEGERS[kind] if value in ("0", "-1", "INT_MIN", "INT64_MIN")]
            yield from ((value, False) for value in (negative if after_array else INTEGERS[kind]))
        elif kind == "double":
            yield from ((value, False) for value in DOUBLES)
        elif kind == "const char *":
            yield from ((value, False) for value in TEXTS)
        elif kind == "mix_shape":
            yield from ((value, False) for value in SHAPES)
        elif kind == "mix_axes":
            yield from ((value, False) for value in AXES)
        elif kind == "mix_dtype":
            yield from ((f"(mix_dtype){value}", False) for value in ("-1", "99"))
        elif kind in ("bool", "_Bool"):
            yield "true", False
        elif kind == "const mix_semantics *":
            yield "NULL", False
            yield "(void *)a_policy()", True
            yield "(void *)memory", True
        elif kind == "mix_scope *":
            yield "NULL", False
            yield "(void *)memory", True
        elif kind == "function":
            yield "NULL", False
        elif kind.endswith("*"):
            yield "NULL", False

    def structs_malformed(self, kind):
        options = re.match(r"(?:const )?(mix_\w+) \*$", kind)
        if not options or options.group(1) not in self.structs:
            return
        name = options.group(1)
        fields = self.structs[name]
        if ("size_t", "size") in fields:
            for size in ("0", "1", f"sizeof({name}) + 8", "SIZE_MAX"):
                yield f"size {size}", "&" + self.struct_of(name, {"size": size}), False
        counted = any(kind.endswith("const *") or kind == "const double *" for kind, _ in fields)
        for field_kind, field in fields:
            if field == "size" or field_kind.endswith("[]"):
                continue
            count = counted and "count" in field
            for value, wrong in self.malformed(field_kind, field, count):
                yield f".{field} = {value}", "&" + self.struct_of(name, {field: value}), wrong

    def add(self, function, result, values, what, wrong, first):
        call = f"{function}({', '.join(values)})"
        number = len(self.rows)
        if result == "const char *":  # which is read
            call = f"read_text({call})"
        self.bodies.append(f"static void call_{number}(void) {{ "
                           f"{'' if result == 'void' else '(void)'}{call}; }}")
        text = what.replace("\\", "\\\\").replace('"', '\\"')
        self.rows.append(f'  {{call_{number}, "{function}", "{text}", {str(wrong).lower()}, '
                         f'{str(first).lower()}}},')

    def add_function(self, function, result, parameters):
        base = [PLAIN.get(function, {}).get(p[1]) or self.base(*p) for p in parameters]
        self.add(function, result, base, "plain arguments", False, False)
        pointers = ("const double *", "const int64_t *", "const void *", "const mix_data_step *")
        arrays = any(kind.endswith("*const *") or kind in pointers
                     or kind.startswith("const char *const") for kind, _ in parameters)
        for at, (kind, name) in enumerate(parameters):
            counted = arrays and ("count" in name or kind == "int" and name in ("n", "rank"))
            changes = [(f"{name} = {value}", value, wrong)
                       for value, wrong in self.malformed(kind, name, counted)]
            for what, value, wrong in [*changes, *self.structs_malformed(kind)]:
                if (function, what.split(" ")[0]) in ENDLESS and ("4000" in what or "MAX" in what):
                    continue
                wrong = wrong and function not in ANY_OBJECT
                self.add(function, result, [*base[:at], value, *base[at + 1:]], what, wrong, at == 0)


def write_constructors(text):
    calls, rows = Calls(text), []
    for function, result, parameters in functions(text):
        if function in EXCLUDED or not object_kind(result) or any(kind == "..." for kind, _ in parameters):
            continue
        values = [PLAIN.get(function, {}).get(p[1]) or calls.base(*p) for p in parameters]
        made = " ".join(f"__auto_type a{at} = {value};" for at, value in enumerate(values))
        names = ", ".join(f"a{at}" for at in range(len(values)))
        print(f"static const void *make_{len(rows)}(int64_t after) {{ {made} fail_after(after); "
              f"return {function}({names}); }}")
        rows.append(f'  {{make_{len(rows)}, "{function}"}},')
    print("static const constructor constructors[] = {\n" + "\n".join(rows) + "\n};")


def main():
    text = sys.stdin.read()
    if sys.argv[1:] == ["constructors"]:
        write_constructors(text)
        return
    calls = Calls(text)
    names = []
    for function, result, parameters in functions(text):
        if function in EXCLUDED or any(kind == "..." for kind, _ in parameters):
            continue
        names.append(function)
        calls.add_function(function, result, parameters)
    print("\n".join(calls.bodies))
    print("static const misuse calls[] = {")
    print("\n".join(calls.rows))
    print(f"}};\nenum {{ FUNCTIONS = {len(names)} }};")


if __name__ == "__main__":
    main()
