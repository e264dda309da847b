//===- ABI.h - Between a compiled rank program and the runtime --*- C -*-===//
//
// Part of nd, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// nd-compile emits one `nd_program` per distinct rank program, a constant of the object file, and a step function that
// calls the nd_rt_* functions below with pointers into the arena and with constant descriptors. Both targets share it.
// All sizes are in elements unless a name says bytes. A change of any layout here raises ND_ABI_VERSION.
//
//===----------------------------------------------------------------------===//

#ifndef ND_RUNTIME_CORE_ABI_H
#define ND_RUNTIME_CORE_ABI_H

#include <stdint.h>

// Names follow the custom of C.
// NOLINTBEGIN(readability-identifier-naming)

#ifdef __cplusplus
extern "C" {
#endif

#define ND_ABI_VERSION 4
#define ND_MAX_RANK 8
#define ND_MAX_AXES 8
#define ND_MAX_DIM_AXES 8 /* that shard one dimension */
#define ND_ALIGNMENT 64   /* bytes: of the arena and of every buffer in it */

typedef enum {
  ND_F32 = 0,
  ND_BF16 = 1,
  ND_F16 = 2,
  ND_F64 = 3,
  ND_I64 = 4,
  ND_I32 = 5,
  ND_I16 = 6,
  ND_I8 = 7,
  ND_I1 = 8
} nd_dtype;
typedef enum { ND_SUM = 0, ND_MAX = 1, ND_MIN = 2 } nd_reduction;
typedef enum {
  ND_ALL_REDUCE = 0,
  ND_ALL_GATHER = 1,
  ND_REDUCE_SCATTER = 2,
  ND_ALL_TO_ALL = 3,
  ND_PERMUTE = 4,
  ND_ALL_SLICE = 5 /* local: no collective of the program's table */
} nd_collective_kind;
typedef enum { ND_PHASE_FORWARD = 0, ND_PHASE_BACKWARD = 1, ND_PHASE_REDUCE = 2, ND_PHASE_UPDATE = 3 } nd_phase;

/// CPU levels that kernels are compiled for, ascending; the runtime takes the highest that the CPU has.
typedef enum {
  ND_CPU_V3 = 0 /* AVX2, FMA */,
  ND_CPU_V4 = 1 /* AVX-512 F, BW, DQ, VL */,
  ND_CPU_LEVELS = 2
} nd_cpu_level;

/// One process of a running program: threads, arena, transport, library state.
typedef struct nd_rank nd_rank;

/// A generated kernel: computes units [lo, hi) of its extent. `args` are the base pointers of its operands, then of its
/// results that are not in place; `scratch` is this thread's own memory of at least the launch's scratch_bytes.
typedef void (*nd_kernel)(void *const *args, int64_t lo, int64_t hi, void *scratch);

typedef struct {
  int32_t kernel; /* index into nd_program.kernels */
  int32_t num_args;
  int64_t extent;        /* units of work, split over the threads in static ranges */
  int64_t grain;         /* ranges are multiples of this, but for the last */
  int64_t scratch_bytes; /* per thread */
  const char *location;
} nd_launch_desc;

/// c[g] = op(a[g]) op(b[g]) (+ bias) (+ c[g] when accumulate). op(a) is [m, k]: stored [m, k] with row stride lda, or
/// [k, m] when transpose_a. Strides between batches in elements; b and c likewise. bias is [n].
typedef struct {
  int32_t id; /* dense, from 0: the runtime's cache of primitives is indexed by it */
  int32_t dtype_ab, dtype_c;
  int32_t transpose_a, transpose_b, accumulate, has_bias;
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch_stride_a, batch_stride_b, batch_stride_c;
  const char *location;
} nd_gemm_desc;

/// Strides of a [B, H, S, D] operand in elements; the innermost stride is 1.
typedef struct {
  int64_t b, h, s;
} nd_attention_strides;

/// What nd.attention and nd.attention_grad say of this rank's queries and keys. lse is contiguous [B, Hq, S] f32, and
/// so is the carry's. Gradients of keys and values are f32.
typedef struct {
  int32_t id, dtype;                             /* dtype: of q, k and v */
  int32_t result_dtype, carry_dtype, grad_dtype; /* of o and d_o; of the carry's o; of dq */
  int32_t has_carry;                             /* o and lse are merged with those over other keys */
  int64_t batch, heads, kv_heads, queries, keys, dim, value_dim;
  nd_attention_strides q, k, v, o;      /* o: the result, also as operand of the gradient */
  nd_attention_strides carry;           /* of the carry's o */
  nd_attention_strides dq, dk, dv, d_o; /* gradient only */
  double scale, softcap;                /* softcap 0: none */
  int64_t causal, window;               /* window 0: none */
  int32_t has_positions,
      has_documents;       /* i64 [B, L], contiguous; a key's position and document are those of its place */
  int32_t has_key_padding; /* i1 [B, L], one byte each, 1 = visible */
  int32_t mask;            /* 0 none, 1 f32 added, 2 i1 (one byte, 1 = visible) */
  int64_t mask_strides[4]; /* of the mask over [B, Hq, all queries, L]; 0 where it broadcasts */
  /* The sequence of L = keys * key_shards places. Queries: the shard of this rank's coordinate along seq_axes; keys:
   * the shard of coordinate (own - ring_step) mod key_shards. What is of length L is whole. */
  int8_t seq_axes[4], head_axes[4]; /* mesh axes, major to minor; -1 ends */
  int64_t key_shards, ring_step;
  int64_t valid;        /* keys of this original index and above are invisible; 0 = none */
  int64_t num_chunks;   /* 0: places are original indices */
  const int64_t *order; /* [num_chunks]: place i holds this chunk of the original sequence */
  int64_t num_map;      /* 0: query heads are equal groups of key heads */
  const int64_t
      *kv_map; /* [num_map]: the key head of each query head of all ranks, modulo kv_heads here; -1 = padding */
  const char *location;
} nd_attention_desc;

/// Pointers of one attention call; unused ones are null.
typedef struct {
  const void *q, *k, *v, *o_in, *d_o;
  const float *lse_in;
  const int64_t *positions, *documents;
  const uint8_t *key_padding;
  const void *mask;
  void *o, *dq, *dk, *dv;
  float *lse;
  const void *carry_o;
  const float *carry_lse;
} nd_attention_args;

/// Where the parts of a collective's operand lie, in elements: strides between `outer` and `middle` rows, and from the
/// part of one position to that of the next (0: there is one part, and it is everyone's).
typedef struct {
  int64_t outer, middle, part;
} nd_part_strides;

/// One operand of a collective. A part is `outer` x `middle` rows of `inner` neighbours, at src and at dst.
///   all_reduce, permute   src and dst are one part, contiguous
///   all_gather            dst holds the part of each position, src one
///   reduce_scatter        src holds a part for each position, dst one; all_slice likewise
///   all_to_all            both hold one for each
typedef struct {
  int64_t outer, middle, inner;
  nd_part_strides src, dst;
} nd_collective_operand;

/// One collective over the ranks that differ only in the listed axes. A rank's position in the group is the row-major
/// index of its coordinates along them.
typedef struct {
  int32_t id; /* dense, from 0, in program order: equal on all ranks */
  int32_t kind, dtype, reduction;
  int32_t is_scalar; /* counted in the class `scalar` */
  int32_t num_axes;
  int8_t axes[ND_MAX_AXES]; /* mesh axes, major to minor, in any order */
  int32_t num_operands;
  const nd_collective_operand *operands;
  const int32_t *sources;      /* of a permute: position i receives from sources[i] */
  const char *group;           /* the group's name in metrics and reports */
  const char *name, *location; /* for messages: what it reduces, and which source line asked for it */
} nd_collective_desc;

/// A named tensor of the program in the arena. kind: "input", "weight", "exp_avg", "exp_avg_sq", "momentum", "scalar",
/// "metric", "gradient", "output", or "coordinate": an i64 that holds this rank's coordinate along the mesh axis
/// `name`, set when the rank is opened. A state tensor has one entry: the step updates it in place.
typedef struct {
  const char *kind, *name;
  int32_t dtype, rank;
  int64_t shape[ND_MAX_RANK];                    /* on this rank, padding included */
  int64_t global_shape[ND_MAX_RANK];             /* logical, without padding */
  int8_t dim_axes[ND_MAX_RANK][ND_MAX_DIM_AXES]; /* mesh axes that shard each dimension, major to minor; -1 ends */
  /* Logical elements in a block of each of these axes: the shard of coordinates (c1, c2) starts at c1*b1 + c2*b2 and
   * ends with its blocks and the logical size. All 0: a block is what the axis' shards hold of `shape`. */
  int64_t dim_blocks[ND_MAX_RANK][ND_MAX_DIM_AXES];
  /* Dimension `units_dim` is stored as equal units, shard after shard: place i of them holds the logical unit units[i],
   * zeros where that is -1. A unit that several places hold is the same in all. num_units 0: in its own order. */
  int32_t units_dim, num_units;
  int64_t unit_size;
  const int64_t *units;
  int64_t pad_value; /* of an input, beyond the logical size */
  int64_t offset;    /* bytes in the arena; rows are contiguous */
  int64_t bound;     /* inputs that index a table: values lie in [0, bound); 0 = not checked */
  int64_t ignore;    /* for "labels": this value is allowed too */
} nd_tensor_desc;

typedef enum { ND_CONSTANT = 0, ND_LINEAR = 1, ND_COSINE = 2 } nd_schedule_kind;

/// The learning rate and Adam's bias corrections of each step, as transformers' get_scheduler computes them.
typedef struct {
  int32_t kind;
  double lr, min_lr;
  int64_t warmup, total_steps; /* total_steps 0: the run's number of steps */
  double beta1, beta2;
} nd_schedule_desc;

typedef struct {
  uint32_t abi_version;
  const char *name;
  int32_t num_axes;
  int32_t axis_sizes[ND_MAX_AXES]; /* outer to inner; rank = row-major index */
  const char *axis_names[ND_MAX_AXES];
  int32_t num_nodes;            /* the ranks fill them one after the other, each with as many; 0 is 1 */
  int64_t arena_bytes;          /* planned, without threads' scratch and library workspace */
  int64_t staging_bytes;        /* the last of them: partial sums of reduce-scatters on their way to another node */
  int64_t thread_scratch_bytes; /* per thread: the largest of any op */
  int32_t num_tensors, num_kernels, num_gemms, num_attentions, num_collectives;
  const nd_tensor_desc *tensors;
  const nd_kernel *kernels[ND_CPU_LEVELS];
  const nd_gemm_desc *const *gemms;
  const nd_attention_desc *const *attentions;
  const nd_collective_desc *const *collectives;
  nd_schedule_desc schedule;
  /// Runs one step. `kernels` is the table of the chosen CPU level.
  void (*step)(nd_rank *rank, char *arena, const nd_kernel *kernels);
} nd_program;

/* Called by the step function
 * ------------------------------------------------------------------------------------------ */

void nd_rt_launch(nd_rank *rank, const nd_kernel *kernels, const nd_launch_desc *desc, void *const *args);
void nd_rt_gemm(nd_rank *rank, const nd_gemm_desc *desc, const void *a, const void *b, const void *bias, void *c);
void nd_rt_attention(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args);
void nd_rt_attention_grad(nd_rank *rank, const nd_attention_desc *desc, const nd_attention_args *args);
void nd_rt_copy(nd_rank *rank, void *dst, const void *src, int64_t bytes);
void nd_rt_fill_zero(nd_rank *rank, void *dst, int64_t bytes);
/// Starts a collective. `operands` are the sources, in the arena, then the targets; those of an all-reduce may be
/// equal. They belong to the transport until the wait; the array itself is read at once.
void nd_rt_collective_start(nd_rank *rank, const nd_collective_desc *desc, void *const *operands);
void nd_rt_collective_wait(nd_rank *rank, const nd_collective_desc *desc);
/// Copies this rank's part; `desc` is an ND_ALL_SLICE of one operand.
void nd_rt_all_slice(nd_rank *rank, const nd_collective_desc *desc, const void *src, void *dst);
void nd_rt_phase(nd_rank *rank, int32_t phase);

/// Per-thread scratch that an attention needs, in bytes: the compiler plans it, the runtime uses it. Query rows are
/// taken in blocks; two score tiles of [ND_ATTENTION_BLOCK, keys rounded up + one cache line] f32 (a stride that is no
/// power of two), one row of masks, a few numbers for each row, and where chunks lie. Operands that are not f32 are
/// converted for a head (keys and values) or a block (the others).
#define ND_ATTENTION_BLOCK 64
static inline int64_t nd_attention_scratch_bytes(const nd_attention_desc *d) {
  int64_t row = ((d->keys + 15) / 16 * 16 + 16) * 4;
  int64_t chunks = (d->num_chunks + 1) * 2 * 4 * 8;
  int64_t width = d->dim + d->value_dim;
  int64_t converted = d->dtype == ND_F32 ? 0 : d->keys * width * 4;
  return (2 * ND_ATTENTION_BLOCK + 1) * row + 4 * ND_ATTENTION_BLOCK * 4 + chunks + converted +
         3 * ND_ATTENTION_BLOCK * width * 4 + 512;
}

/// What a rank needs for the partial sums of a reduce-scatter over nodes: in both halves, which pieces use in turns, a
/// slot for each node, of as many elements as a rank receives, in all at most 2 MiB.
#define ND_STAGING_GRAIN 32
#define ND_MAX_STAGING_BYTES (2 << 20)
static inline int64_t nd_staging_bytes(int64_t nodes, int64_t elements, int64_t element_bytes) {
  int64_t slot = (elements + ND_STAGING_GRAIN - 1) / ND_STAGING_GRAIN * ND_STAGING_GRAIN;
  int64_t bytes = 2 * nodes * slot * element_bytes;
  return bytes < ND_MAX_STAGING_BYTES ? bytes : ND_MAX_STAGING_BYTES;
}

/// The whole of an executable's main.
int nd_rank_main(int argc, char **argv, const nd_program *program);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming)

#endif // ND_RUNTIME_CORE_ABI_H
