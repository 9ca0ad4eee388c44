"""Writes metrics.inc, results of the metrics of tf_keras 2.21 and Keras 3.15, for test_metric_keras.c.

With both packages and tensorflow installed: python record_metrics.py > metrics.inc
"""
import os
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import keras
import tf_keras

F = lambda *rows: np.array(rows, np.float32)
I = lambda *rows: np.array(rows, np.int64)
rng = np.random.default_rng(5)
# Two batches (labels, predictions, weights) for each kind of data. Multiples of 1/64 are exact in float32.
q = lambda *shape: (rng.integers(0, 65, shape) / 64).astype(np.float32)
b = lambda *shape: rng.integers(0, 2, shape).astype(np.float32)
w = lambda *shape: (rng.integers(0, 9, shape) / 4).astype(np.float32)
hot = lambda n, c: np.eye(c, dtype=np.float32)[rng.integers(0, c, n)]
DATA = {
    "binary": [(b(12, 1), q(12, 1), w(12)) for _ in range(2)],
    "flat": [(b(9), q(9), w(9)) for _ in range(2)],
    "multi": [(b(8, 3), q(8, 3), w(8)) for _ in range(2)],
    "multi_weights": [(b(8, 3), q(8, 3), w(8, 3)) for _ in range(2)],
    "logits": [(b(10, 1), ((rng.integers(-64, 65, (10, 1))) / 16).astype(np.float32), w(10))
               for _ in range(2)],
    "one_hot": [(hot(7, 5), q(7, 5), w(7)) for _ in range(2)],
    "numbers": [((rng.integers(-32, 33, (6, 2)) / 8).astype(np.float32),
                 (rng.integers(-32, 33, (6, 2)) / 8).astype(np.float32), w(6)) for _ in range(2)],
    "classes": [(rng.integers(0, 4, (11,)).astype(np.float32), rng.integers(0, 4, (11,)).astype(np.float32),
                 rng.integers(0, 4, (11,)).astype(np.float32)) for _ in range(2)],
    "wide": [(b(3, 4), q(3, 4), w(3)) for _ in range(2)],
    "over_time": [(q(3, 4, 2), q(3, 4, 2), w(3, 4)), (q(3, 5, 2), q(3, 5, 2), w(3, 5))],
    "ends": [(F(0, 1, 1, 0, 1), F(0, 0, 1, 1, 0.5), F(1, 2, 1, 0.5, 1)), (F(1, 0), F(1.5, -1), F(1, 1))],
    "nothing": [(F(0, 0), F(0.25, 0), F(1, 1))],
    "pad": [],
}
del DATA["pad"]
THREE = [0.25, 0.5, 0.875]
EVEN = [0.0, 0.25, 0.5, 0.75, 1.0]
CASES = []  # (data, class, {Keras arguments}, C arguments, generations)
def case(data, name, kwargs=None, c="", which="tk", weighted="both"):
    CASES.append((data, name, kwargs or {}, c, which, weighted))
for data in ("binary", "flat", "multi", "multi_weights", "ends", "nothing"):
    for name in ("Precision", "Recall", "TruePositives", "FalsePositives", "TrueNegatives", "FalseNegatives"):
        case(data, name)
        if data in ("binary", "multi"):
            case(data, name, {"thresholds": THREE}, ".thresholds = MIX_NUMBERS(0.25, 0.5, 0.875)")
            case(data, name, {"thresholds": EVEN}, ".thresholds = MIX_NUMBERS(0, 0.25, 0.5, 0.75, 1)")
            case(data, name, {"thresholds": 0}, ".thresholds = MIX_NUMBERS(0)")
for name in ("Precision", "Recall"):
    for k in (1, 2, 5):
        case("one_hot", name, {"top_k": k}, f".top_k = {k}")
    case("one_hot", name, {"top_k": 2, "class_id": 3}, ".top_k = 2, .has_class_id = true, .class_id = 3")
    case("one_hot", name, {"top_k": 3, "thresholds": [0.5, 0.75]},
         ".top_k = 3, .thresholds = MIX_NUMBERS(0.5, 0.75)")
    case("multi", name, {"class_id": 0}, ".has_class_id = true")
    case("multi", name, {"class_id": 2, "thresholds": EVEN},
         ".has_class_id = true, .class_id = 2, .thresholds = MIX_NUMBERS(0, 0.25, 0.5, 0.75, 1)")
for curve in ("ROC", "PR", "PRGAIN"):
    for way in ("interpolation", "majoring", "minoring"):
        c = f'.curve = "{curve}", .summation_method = "{way}"'
        for data in ("binary", "multi", "ends"):
            case(data, "AUC", {"curve": curve, "summation_method": way}, c)
        case("multi", "AUC", {"curve": curve, "summation_method": way, "num_thresholds": 7},
             c + ", .num_thresholds = 7")
case("flat", "AUC")
case("nothing", "AUC")
case("multi_weights", "AUC")
case("binary", "AUC", {"num_thresholds": 2}, ".num_thresholds = 2")
case("binary", "AUC", {"thresholds": [0.75, 0.125, 0.5]}, ".thresholds = MIX_NUMBERS(0.75, 0.125, 0.5)")
case("binary", "AUC", {"thresholds": [0.25, 0.5, 0.75]}, ".thresholds = MIX_NUMBERS(0.25, 0.5, 0.75)")
case("logits", "AUC", {"from_logits": True}, ".from_logits = true")
case("multi", "AUC", {"multi_label": True}, ".multi_label = true")
case("multi", "AUC", {"multi_label": True, "num_labels": 3, "curve": "PR"},
     '.multi_label = true, .num_labels = 3, .curve = "PR"')
case("multi", "AUC", {"multi_label": True, "thresholds": [0.125, 0.75]},
     ".multi_label = true, .thresholds = MIX_NUMBERS(0.125, 0.75)", weighted="no")
case("multi", "AUC", {"multi_label": True, "label_weights": [1, 0.5, 2]},
     ".multi_label = true, .label_weights = MIX_NUMBERS(1, 0.5, 2)")
case("multi", "AUC", {"label_weights": [1, 0.5, 2]}, ".label_weights = MIX_NUMBERS(1, 0.5, 2)")
case("multi", "AUC", {"label_weights": [1, 0.5, 2], "thresholds": [0.125, 0.75]},
     ".label_weights = MIX_NUMBERS(1, 0.5, 2), .thresholds = MIX_NUMBERS(0.125, 0.75)")
for name, argument in (("SensitivityAtSpecificity", "specificity"),
                       ("SpecificityAtSensitivity", "sensitivity"), ("PrecisionAtRecall", "recall"),
                       ("RecallAtPrecision", "precision")):
    for value in (0.5, 0.75, 1.0):
        case("binary", name, {argument: value}, f".{argument} = {value}")
    case("multi", name, {argument: 0.25, "num_thresholds": 5}, f".{argument} = 0.25, .num_thresholds = 5")
    case("multi", name, {argument: 0.25, "num_thresholds": 1}, f".{argument} = 0.25, .num_thresholds = 1")
    case("multi", name, {argument: 0.5, "class_id": 1},
         f".{argument} = 0.5, .has_class_id = true, .class_id = 1")
for average in (None, "micro", "macro", "weighted"):
    a = f'.average = "{average}"' if average else ""
    sep = ", " if a else ""
    for data in ("one_hot", "multi"):
        case(data, "F1Score", {"average": average}, a)
        case(data, "FBetaScore", {"average": average, "beta": 2.0, "threshold": 0.5},
             a + sep + ".beta = 2, .threshold = 0.5")
for aggregation in ("uniform_average", "variance_weighted_average", None):
    a = f'.class_aggregation = "{aggregation or "none"}"'
    case("numbers", "R2Score", {"class_aggregation": aggregation}, a)
    case("numbers", "R2Score", {"class_aggregation": aggregation, "num_regressors": 2},
         a + ", .num_regressors = 2")
case("numbers", "R2Score", {"num_regressors": 40}, ".num_regressors = 40")
case("classes", "MeanIoU", {"num_classes": 4}, ".num_classes = 4")
case("classes", "MeanIoU", {"num_classes": 5, "ignore_class": 1},
     ".num_classes = 5, .has_ignore_class = true, .ignore_class = 1")
case("classes", "IoU", {"num_classes": 4, "target_class_ids": [0, 2]},
     ".num_classes = 4, .target_class_ids = MIX_NUMBERS(0, 2)")
case("one_hot", "OneHotMeanIoU", {"num_classes": 5}, ".num_classes = 5")
case("one_hot", "OneHotIoU", {"num_classes": 5, "target_class_ids": [1, 4]},
     ".num_classes = 5, .target_class_ids = MIX_NUMBERS(1, 4)")
case("one_hot", "MeanIoU", {"num_classes": 5, "sparse_y_true": False, "sparse_y_pred": False},
     ".num_classes = 5, .not_sparse_y_true = true, .not_sparse_y_pred = true")
case("flat", "BinaryIoU")
case("flat", "BinaryIoU", {"target_class_ids": [1], "threshold": 0.25},
     ".target_class_ids = MIX_NUMBERS(1), .threshold = 0.25")
for data in ("numbers", "wide"):
    case(data, "PearsonCorrelation", which="k")
    case(data, "ConcordanceCorrelation", which="k")
case("numbers", "PearsonCorrelation", {"axis": 0}, ".axis = 0 - 2", which="k", weighted="no")
for name in ("MeanSquaredError", "RootMeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError",
             "MeanSquaredLogarithmicError", "LogCoshError", "CosineSimilarity", "Poisson", "KLDivergence",
             "Hinge", "SquaredHinge", "CategoricalHinge"):
    case("over_time", name)
    case("wide", name)
case("binary", "BinaryAccuracy", {"threshold": 0.25}, ".threshold = 0.25")
case("multi_weights", "BinaryAccuracy", weighted="no")
case("one_hot", "CategoricalAccuracy")
case("one_hot", "TopKCategoricalAccuracy", {"k": 2}, ".k = 2")
case("one_hot", "CategoricalCrossentropy", {"label_smoothing": 0.125}, ".label_smoothing = 0.125")
case("logits", "BinaryCrossentropy", {"from_logits": True}, ".from_logits = true")
case("binary", "BinaryCrossentropy")
case("classes", "Accuracy")
case("numbers", "MeanRelativeError",
     {"normalizer": np.array([[1, 0], [2, 4], [1, 1], [2, 2], [0, 8], [1, 4]], np.float32)},
     ".normalizer = MATRIX(MIX_FLOAT32, 6, 2, 1, 0, 2, 4, 1, 1, 2, 2, 0, 8, 1, 4)", which="t", weighted="no")

def number(x):
    x = float(x)
    return "NAN" if x != x else "%.9g" % x

def results(module, name, kwargs, batches, weighted):
    metric = getattr(module.metrics, name)(**kwargs)
    for y, p, weight in batches:
        metric.update_state(y, p, sample_weight=weight if weighted else None)
    variables = [np.asarray(v) for v in metric.variables]
    return np.asarray(metric.result()).reshape(-1), variables

def filled(line, end=""):
    """Breaks a line of C after commas, at 108 columns; all parts but the last get `end`."""
    parts = [""]
    for word in re.split("(?<=,) ", line):
        if parts[-1] and len(parts[-1]) + 1 + len(word) > 108:
            parts[-1] += end
            parts.append("    " + word)
        else:
            parts[-1] += " " + word if parts[-1] else word
    return "\n".join(parts)

def numbers_of(values):
    return ", ".join(number(v) for v in values)

def shape_of(x):
    return "{.rank = %d, .dims = {%s}}" % (x.ndim, ", ".join(map(str, x.shape)))

print("/* Made by record_metrics.py with tf_keras %s and Keras %s. */"
      % (tf_keras.__version__, keras.__version__))
for name, batches in DATA.items():
    for i, (y, p, weight) in enumerate(batches):
        for part, x in (("y", y), ("p", p), ("w", weight)):
            values = numbers_of(x.reshape(-1))
            print(filled("static const double %s_%s%d[] = {%s};" % (name, part, i, values)))
    rows = []
    for i, (y, p, weight) in enumerate(batches):
        arrays = ", ".join("%s_%s%d" % (name, part, i) for part in "ypw")
        rows.append(filled("    {%s, %s, %s}" % (arrays, shape_of(y), shape_of(weight))))
    print("static const recorded_batch %s[] = {\n%s};" % (name, ",\n".join(rows)))
print("#define RECORDED_CASES(X) \\")
lines = []
for data, name, kwargs, c, which, weighted in CASES:
    for generation in which:
        module = {"t": tf_keras, "k": keras}[generation]
        for use in ((False, True) if weighted == "both" else (False,)):
            try:
                result, state = results(module, name, kwargs, DATA[data], use)
            except Exception as error:
                what = (generation, name, kwargs, use, str(error)[:200])
                print("left out: %s %s %s weighted=%s: %s" % what, file=sys.stderr)
                continue
            flat = [v for s in state for v in s.reshape(-1)][:16]
            semantics = {"t": "tf_keras", "k": "keras3"}[generation]
            lines.append(filled('  X("%s", "%s", %s, %d, %s, LIST(%s), LIST(%s), %s)' % (
                semantics, name, data, len(DATA[data]), "true" if use else "false", numbers_of(result),
                numbers_of(flat), "SIZED, " + c if c else "SIZED"), " \\"))
print(" \\\n".join(lines))
