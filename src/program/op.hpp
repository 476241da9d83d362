// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/dtypes_and_buffers.hpp"

namespace isoscale::program {

enum class Transpose : std::uint8_t { no, yes };

/// A row-major matrix, or a batch of matrices: row r of matrix b begins at element slice.first + b
/// * batch_stride + r * row_stride. The slice covers all elements that an op touches.
struct Matrix {
  Slice slice{};
  std::uint64_t row_stride = 0;    ///< elements
  std::uint64_t batch_stride = 0;  ///< elements; 0 = the same matrix for every b
};

/// The arithmetic of a GEMM. native: multiplies in the operands' own type and accumulates in at
/// least f32. tf32: first rounds f32 operands to tf32.
enum class ComputeMode : std::uint8_t { native, tf32 };

/// The way in which products of fp8 operands are summed. split: the tensor cores compute partial
/// sums, which are added to an f32 accumulator. fast: all sums stay in the tensor cores, whose
/// accumulators keep about 14 bits.
enum class Accumulation : std::uint8_t { split, fast };

/// D = alpha * op(A) * op(B) + beta * C, `batch` times; op(A) is m x k, op(B) k x n, C and D m x n,
/// all row-major. If beta is 0, C is not read. C may be the same matrix as D. C has D's type; D may
/// be wider than A and B. descale_a and descale_b, if present, are buffers of one f32 element;
/// alpha is multiplied by both.
struct Gemm {
  std::uint32_t m = 0, n = 0, k = 0, batch = 1;
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  ComputeMode mode = ComputeMode::native;
  Accumulation accumulation = Accumulation::split;  ///< used for fp8 operands on a GPU
  double alpha = 1, beta = 0;
  Matrix a{}, b{}, c{}, d{};
  BufferId descale_a = no_buffer, descale_b = no_buffer;
};

/// The software that carries out messages and collectives. nccl: the calls of NCCL or, on the host
/// executor, those of MPI. symmetric: GPU kernels that read and write the buffers of other ranks
/// directly; these buffers are in Space::symmetric, memory that all ranks of a group have mapped.
enum class Transport : std::uint8_t { nccl, symmetric };
[[nodiscard]] std::string_view name(Transport transport);

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
};
enum class Reduction : std::uint8_t { sum, min, max };

/// One collective over the group of ranks that differ only along `axes`. `send` and `receive` are
/// this rank's buffers, of these sizes:
/// - all_reduce, reduce and broadcast: equal. The op is in place if both are the same slice.
/// - all_gather, and gather at the root: receive = group size x send
/// - reduce_scatter, and scatter at the root: send = group size x receive
/// - all_to_all: equal, unless it is uneven. It is uneven if it has counts, which are the numbers
///   of elements to and from each member; the elements are packed in member order.
/// `root` is a position in the group.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Reduction reduction = Reduction::sum;
  mesh::AxisSet axes{};
  std::int32_t root = 0;
  Transport transport = Transport::nccl;
  Slice send{}, receive{};
  std::vector<std::uint64_t> send_counts{}, receive_counts{};
};

enum class Direction : std::uint8_t { send, receive };

/// One message of an Exchange, to or from the rank `offset` steps along `axis` (wrapping around).
struct Transfer {
  Direction direction = Direction::send;
  mesh::Axis axis = mesh::Axis::pp;
  std::int32_t offset = 1;
  Slice slice{};
};

/// Returns the message that sends a slice to the rank `offset` steps along an axis.
[[nodiscard]] inline Transfer send_to(mesh::Axis axis, std::int32_t offset, const Slice& slice) {
  return {.direction = Direction::send, .axis = axis, .offset = offset, .slice = slice};
}
/// Returns the message that receives a slice from the rank `offset` steps along an axis.
[[nodiscard]] inline Transfer receive_from(mesh::Axis axis, std::int32_t offset,
                                           const Slice& slice) {
  return {.direction = Direction::receive, .axis = axis, .offset = offset, .slice = slice};
}

/// A group of sends and receives that start together and end together. Between two ranks, the n-th
/// send along an axis by some offset meets the n-th receive along this axis by the opposite offset.
struct Exchange {
  std::vector<Transfer> transfers;
  Transport transport = Transport::nccl;
};

/// Copies dst = src, over batch x rows x columns. Both may have strides, and they may be in
/// different spaces, such as host and device memory.
struct Copy {
  std::uint32_t rows = 0, columns = 0, batch = 1;
  Matrix src{}, dst{};
};

/// Computes dst = a + scale * b, over rows x columns. An executor may or may not round the product
/// before it is added (it may use fused multiply-add). dst may be the same matrix as a or b.
/// Integers wrap, and their scale must be a whole number.
struct Add {
  std::uint32_t rows = 0, columns = 0;
  Matrix a{}, b{}, dst{};
  double scale = 1;
};

/// These two functions return ops on slices, which the ops treat as matrices of one row. The op of
/// row_copy() copies `from` to `to`; the op of row_sum() sets `to` to a + scale * b. The slices
/// must have fewer than 2^32 elements.
[[nodiscard]] inline Copy row_copy(const Slice& from, const Slice& to) {
  return {.rows = 1,
          .columns = static_cast<std::uint32_t>(from.count),
          .src = {.slice = from, .row_stride = from.count},
          .dst = {.slice = to, .row_stride = to.count}};
}
[[nodiscard]] inline Add row_sum(const Slice& a, const Slice& b, const Slice& to,
                                 double scale = 1) {
  return {.rows = 1,
          .columns = static_cast<std::uint32_t>(to.count),
          .a = {.slice = a, .row_stride = a.count},
          .b = {.slice = b, .row_stride = b.count},
          .dst = {.slice = to, .row_stride = to.count},
          .scale = scale};
}

/// Cuts a slice into consecutive pieces of at most `most` elements, since an op counts the rows and
/// the columns of its operands in 32 bits. Slices with equal counts have corresponding pieces.
[[nodiscard]] inline std::vector<Slice> pieces_of(const Slice& slice,
                                                  std::uint64_t most = std::uint64_t{1} << 31U) {
  std::vector<Slice> pieces;
  for (std::uint64_t done = 0; done < slice.count; done += most) {
    Slice& piece = pieces.emplace_back(slice);
    piece.offset += done;
    piece.count = std::min(most, slice.count - done);
  }
  return pieces;
}

/// The factor by which a cast multiplies. fixed: Cast::scale. amax: the largest power of two with
/// which no element exceeds Cast::target, that is 2^floor(log2(target / max|src|)). Its exponent is
/// kept within -126 ... 126; if max|src| is 0 or not finite, the factor is 1.
enum class CastScale : std::uint8_t { fixed, amax };

/// Casts src (rows x columns) to dst (rows x columns) and to `transposed` (columns x rows); one of
/// the two may have no buffer. Both become factor * src in their element type (see CastScale),
/// rounded once to nearest even; fp8 saturates at its largest finite value. With CastScale::amax,
/// the inverse of the factor is written to `descale`, one f32 element. The transposed copy exists
/// because fp8 GEMMs on Ada and Hopper GPUs need both operands contiguous along k.
struct Cast {
  std::uint32_t rows = 1, columns = 0;
  Matrix src{}, dst{}, transposed{};
  CastScale scaling = CastScale::fixed;
  double scale = 1;   ///< factor of a fixed cast
  double target = 0;  ///< used by amax: usually the largest finite value of dst's type
  BufferId descale = no_buffer;
};

enum class FillSource : std::uint8_t { random, normal, constant };

/// Fills the elements of a shard, of any type, from one of three sources. Random numbers depend
/// only on (key, global index), so an element has the same value on every mesh and executor.
/// - random: an integer in -range ... range times 2^exponent, exact in bf16 up to the range 127.
///   With a small range and few elements that are not 0, sums over many ranks stay exact in types
///   of few digits.
/// - normal, for floating-point types only: a number with random bits in its whole significand and
///   an exponent distributed as in a normal distribution with standard deviation 2^exponent, but
///   limited so that magnitudes are 1/32 to 4 times the standard deviation. Multiplying such
///   numbers takes as much power as multiplying the data of a real training run.
/// - constant: `value`.
/// Integer types take whole numbers, modulo 2^bits.
struct Fill {
  Slice dst{};
  Shard shard{};
  FillSource source = FillSource::random;
  std::uint64_t key = 0;
  std::int32_t exponent = 0;
  double value = 0;
  std::int32_t range = 127;  ///< random: 1 ... 127; in f32 and wider types up to 2^25 - 1
  std::uint32_t one_in = 1;  ///< random: on average one in this many elements is drawn; the others
                             ///< are 0
};

/// Returns the op that sets all elements of a slice to `value`.
[[nodiscard]] inline Fill constant_fill(const Slice& dst, double value) {
  return {.dst = dst,
          .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}},
          .source = FillSource::constant,
          .value = value};
}

enum class Optimizer : std::uint8_t { sgd, adam };

/// One optimizer step on a slice, element by element, with g = gradient * gradient_scale.
/// sgd:  w -= rate * g.
/// adam: Kingma & Ba, arXiv 1412.6980, algorithm 1; `powers` holds (beta1^t, beta2^t) and starts at
///       (1, 1). In each step, the first op that uses `powers` multiplies it by (beta1, beta2).
/// w is `master` if it has a buffer (`weight` then receives the rounded w), else `weight`.
struct Update {
  Optimizer optimizer = Optimizer::sgd;
  Slice weight{}, master{}, gradient{}, moment1{}, moment2{}, powers{};
  double gradient_scale = 1;
  double rate = 0.01, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

/// Advice about the pages of managed memory, which are in host memory or in device memory. A
/// prefetch moves pages to the named memory, in stream order; other advice takes effect when it is
/// issued. read_mostly: host and device both keep copies; prefer: pages stay in the named memory
/// when the other processor touches them.
enum class Advice : std::uint8_t {
  prefetch_device,
  prefetch_host,
  read_mostly,
  unset_read_mostly,
  prefer_device,
  prefer_host,
  unset_preferred,
};

/// Gives advice about a slice of managed memory; no element changes. The host executor ignores it.
struct Advise {
  Slice slice{};
  Advice advice = Advice::prefetch_device;
};

/// Root-mean-square norm of each row (Zhang & Sennrich, arXiv 1910.07467), without learned gains: y
/// = s / sqrt(mean(s^2) + epsilon). Without an addend, s is x. With one, s is x + addend, and is
/// also written to `sum`. `inverse` receives 1 / sqrt(mean(s^2) + epsilon) of each row, in f64 if x
/// is f64, else in f32. y may be the same matrix as s.
struct Norm {
  std::uint32_t rows = 0, columns = 0;
  Matrix x{}, addend{}, sum{}, y{};
  Slice inverse{};
  double epsilon = 1e-5;
};

/// Computes dx = inverse * (dy - y * mean(dy * y)) + addend, row by row, where y = s * inverse of
/// the preceding Norm. An addend without a buffer counts as 0. dx may be the same matrix as dy or
/// addend.
struct NormGradient {
  std::uint32_t rows = 0, columns = 0;
  Matrix dy{}, s{}, addend{}, dx{};
  Slice inverse{};
};

/// gelu: y = x/2 * (1 + erf(x / sqrt 2)) (Hendrycks & Gimpel, arXiv 1606.08415). swiglu: y = up *
/// x / (1 + exp(-x)) (Shazeer, arXiv 2002.05202).
enum class ActivationKind : std::uint8_t { gelu, swiglu };

/// Computes y = f(x), or f(x, up), element by element over rows x columns. y may be the same matrix
/// as x or up.
struct Activation {
  ActivationKind kind = ActivationKind::gelu;
  std::uint32_t rows = 0, columns = 0;
  Matrix x{}, up{}, y{};
};

/// Computes dx = dy * df/dx and, for swiglu, dup = dy * df/dup. dx may be the same matrix as dy or
/// x, and dup the same as up.
struct ActivationGradient {
  ActivationKind kind = ActivationKind::gelu;
  std::uint32_t rows = 0, columns = 0;
  Matrix dy{}, x{}, up{}, dx{}, dup{};
};

/// Computes y = exp(x - max) / sum(exp(x - max)) for each row of `columns` elements; there are
/// batch x rows rows. y may be the same matrix as x.
struct Softmax {
  std::uint32_t rows = 0, columns = 0, batch = 1;
  Matrix x{}, y{};
};

/// Computes dx = y * (dy - sum(dy * y)), row by row. dx may be the same matrix as dy or y.
struct SoftmaxGradient {
  std::uint32_t rows = 0, columns = 0, batch = 1;
  Matrix y{}, dy{}, dx{};
};

/// Divides src into blocks of `block` consecutive elements, of which the last may be shorter, and
/// selects from each block the `keep` elements of largest magnitude (of equal ones, the first). It
/// writes `keep` values and places for each block, in ascending order of place; a place is an index
/// in src, as i32. If the last block has fewer than `keep` elements, the missing places are -1 and
/// their values 0. In src, selected elements become 0 and the others stay: error feedback adds this
/// rest to the next step (Stich et al., arXiv 1809.07599).
struct Select {
  std::uint32_t block = 0, keep = 0;
  Slice src{}, values{}, places{};
};

/// Returns the number of blocks of `block` elements, the last of which may be short.
[[nodiscard]] constexpr std::uint64_t block_count(std::uint64_t elements, std::uint32_t block) {
  return (elements + block - 1) / block;
}

/// Sets dst to the sum of `parts` lists of elements. Each list has the format that Select writes
/// for a src as long as dst; `values` and `places` hold the lists one after another. Elements whose
/// places are in no list become 0. The lists are added in order, so that equal lists give results
/// with equal bits.
struct Spread {
  std::uint32_t block = 0, keep = 0, parts = 1;
  Slice values{}, places{}, dst{};
};

/// Sets row i of dst to scale times the sum of `each` rows of src, added in order. Their row
/// numbers are from[i * each] to from[(i + 1) * each - 1], where no_row stands for a row of zeros.
/// Mixture-of-experts layers use this op to dispatch tokens to experts and to combine the results.
struct Rows {
  static constexpr std::uint32_t no_row = ~std::uint32_t{0};
  std::uint32_t rows = 0, columns = 0, each = 1;
  double scale = 1;
  Matrix src{}, dst{};
  std::vector<std::uint32_t> from{};
};

/// Writes the checksum of src (batch x rows x columns elements of any type) to `sum`, two i64
/// elements: the checksum of the elements' bits (program/fill_and_checksum.hpp), and the number of
/// elements that are infinite or not a number. If `flip` has a buffer, it holds two i64 elements:
/// the index of an element of src in row-major order, and the bits to flip in it before the
/// checksum is taken.
struct Checksum {
  std::uint32_t rows = 0, columns = 0, batch = 1;
  Matrix src{};
  Slice sum{}, flip{};
};

using Payload = std::variant<Gemm, Collective, Exchange, Copy, Add, Cast, Fill, Update, Advise,
                             Norm, NormGradient, Activation, ActivationGradient, Softmax,
                             SoftmaxGradient, Select, Spread, Rows, Checksum>;

/// The kind of an op, for tables and cost models: each CollectiveKind has a kind of its own, and
/// each other type of payload has one kind.
enum class OpKind : std::uint8_t {
  gemm,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  exchange,
  copy,
  add,
  cast,
  fill,
  update,
  advise,
  norm,
  norm_gradient,
  activation,
  activation_gradient,
  softmax,
  softmax_gradient,
  select,
  spread,
  rows,
  checksum,
};
inline constexpr std::size_t op_kind_count = static_cast<std::size_t>(OpKind::checksum) + 1;
// nvcc 12.4 refuses std::to_array here.
inline constexpr std::array<std::string_view, op_kind_count> op_kind_names{
    {"gemm",
     // the collectives, in the order of CollectiveKind
     "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter",
     "all_to_all", "barrier",
     // the other payloads, in the order of Payload
     "exchange", "copy", "add", "cast", "fill", "update", "advise", "norm", "norm_gradient",
     "activation", "activation_gradient", "softmax", "softmax_gradient", "select", "spread", "rows",
     "checksum"}};
static_assert(!op_kind_names.back().empty());
[[nodiscard]] constexpr std::string_view name(OpKind kind) {
  return op_kind_names[static_cast<std::size_t>(kind)];
}
/// Returns the kind of op that has this name; absent if there is none.
[[nodiscard]] constexpr std::optional<OpKind> op_kind_of(std::string_view name) {
  const auto* const found = std::ranges::find(op_kind_names, name);
  if (found == op_kind_names.end()) return std::nullopt;
  return static_cast<OpKind>(found - op_kind_names.begin());
}
template <class... Ops>
std::variant<const Ops*...> pointer_to_one_of(const std::variant<Ops...>& payload);
/// Points to an op of any kind. Functions that only read an op take this pointer rather than a
/// Payload, which would be a copy of the op and its possibly long lists.
using OpPointer = decltype(pointer_to_one_of(Payload{}));
[[nodiscard]] OpPointer pointer_to(const Payload& payload);
template <class Op>
[[nodiscard]] OpPointer pointer_to(const Op& op) {
  return OpPointer{&op};
}

[[nodiscard]] OpKind kind_of(OpPointer op);
/// Returns the kind of a Payload, or of an op outside a Payload.
template <class Op>
[[nodiscard]] OpKind kind_of(const Op& op) {
  return kind_of(pointer_to(op));
}
[[nodiscard]] constexpr bool communicates(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::exchange;
}
/// True if an op of this kind computes: it does not communicate, and is neither a copy nor advice.
[[nodiscard]] constexpr bool computes(OpKind kind) {
  return !communicates(kind) && kind != OpKind::copy && kind != OpKind::advise;
}

/// The part of a training step that an op belongs to.
enum class Phase : std::uint8_t { setup, input, forward, backward, gradient_reduction, optimizer };
inline constexpr std::size_t phase_count = 6;
[[nodiscard]] std::string_view name(Phase phase);

using StreamId = std::uint8_t;
inline constexpr std::size_t max_streams = 12;

/// A wait until the first `count` ops of `stream` have finished.
struct Wait {
  StreamId stream = 0;
  std::uint32_t count = 0;
};

/// The place of an op in the model. `layer` or `microbatch` is -1 if the op belongs to no
/// particular one.
struct Place {
  Phase phase = Phase::setup;
  std::int32_t layer = -1;
  std::int32_t microbatch = -1;
};

struct Op {
  Payload payload;
  Place place{};
  StreamId stream = 0;
  bool awaited = false;          ///< some op on another stream waits for this one
  std::uint8_t wait_count = 0;   ///< at most one wait per other stream
  std::uint32_t wait_begin = 0;  ///< index of its first wait in Program::waits
};

/// Returns the name of an op in timelines: "gemm layer 3 mb 0", where mb stands for microbatch.
[[nodiscard]] std::string label(OpKind kind, const Place& place);
/// Returns the name of an op in messages: "gemm (forward, layer 3, microbatch 1)".
[[nodiscard]] std::string describe(OpKind kind, const Place& place);

/// Returns the ranks of a mesh that `rank` communicates with in an op: for a collective the members
/// of its group, `rank` included; for an exchange the other rank of each message; for other ops
/// none.
[[nodiscard]] std::vector<int> partners(const Op& op, const mesh::Shape& mesh, int rank);

}  // namespace isoscale::program
