/* Fourier transforms: XLA's, of complex numbers, which exist here alone. */
#include "backend/xla/emit_inside.h"

/* "tensor<2x4xcomplex<f32>>" for the parts' type. */
static void put_complex_type(mix_hlo_writer *w, mix_type type) {
  mix_text_put(&w->text, "tensor<");
  for (int i = 0; i < type.shape.rank; i++) mix_text_put(&w->text, "%lldx", (long long)type.shape.dims[i]);
  mix_text_put(&w->text, "complex<%s>>", type.dtype == MIX_FLOAT64 ? "f64" : "f32");
}

/* A value of the type's complex numbers; its statement is begun. */
static mix_hlo begin_complex(mix_hlo_writer *w, mix_type type, const char *op) {
  const mix_hlo value = mix_hlo_new(w, type);
  mix_hlo_line(w);
  mix_text_put(&w->text, "%%%d = stablehlo.%s ", value.number, op);
  return value;
}

static void end_complex(mix_hlo_writer *w, mix_type type, const char *end) {
  put_complex_type(w, type);
  mix_text_put(&w->text, "%s\n", end);
}

static mix_hlo part_of(mix_hlo_writer *w, mix_hlo x, const char *op) {
  const mix_hlo part = begin_complex(w, x.type, op);
  mix_text_put(&w->text, "%%%d : (", x.number);
  put_complex_type(w, x.type);
  mix_text_put(&w->text, ") -> ");
  mix_hlo_put_type(w, x.type);
  mix_text_put(&w->text, "\n");
  return part;
}

void mix_emit_fourier(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const bool inverse = ((const mix_fourier_attributes *)node->attributes)->inverse;
  const mix_hlo real = mix_emit_widen(e, mix_emit_operand(e, node, 0)),
                imaginary = mix_emit_widen(e, mix_emit_operand(e, node, 1));
  const mix_type type = real.type;
  const int64_t size = type.shape.dims[type.shape.rank - 1];
  if (!mix_shape_size(type.shape)) {
    mix_emit_result(e, node, 0, real);
    mix_emit_result(e, node, 1, imaginary);
    return;
  }
  const mix_hlo x = begin_complex(w, type, "complex");
  mix_hlo_put(w, real);
  mix_text_put(&w->text, ", ");
  mix_hlo_put(w, imaginary);
  mix_text_put(&w->text, " : ");
  end_complex(w, type, "");
  const mix_hlo y = begin_complex(w, type, "fft");
  mix_text_put(&w->text, "%%%d, type = %s, length = [%lld] : (", x.number, inverse ? "IFFT" : "FFT",
               (long long)size);
  put_complex_type(w, type);
  mix_text_put(&w->text, ") -> ");
  end_complex(w, type, "");
  for (int i = 0; i < 2; i++) {
    const mix_hlo part = part_of(w, y, i ? "imag" : "real"); /* IFFT divides by the size */
    mix_emit_result(e, node, i,
                    inverse ? mix_hlo_multiply(w, part, mix_hlo_like(w, part, (double)size)) : part);
  }
}
